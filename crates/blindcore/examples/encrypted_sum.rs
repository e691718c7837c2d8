//! Encrypts numbers, adds and weighs them without the secret key, and decrypts the results.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use blindcore::sum::{
    Ciphertexts, Decryptor, Encoding, Evaluator, KeySize, Mode, Plaintexts, SecretKey, Weights,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = blindcore::device("auto")?;
    // 512 bits are quick and not secure: an example. Keys for use have 3072.
    let secret = SecretKey::generate(KeySize::test_only(512)?, Mode::ShortExponent)?;

    let evaluator = Evaluator::new(secret.public(), &device)?;
    let numbers = Plaintexts::integers(secret.public(), &[3, -4, 5], Encoding::integers(8)?)?;
    let encrypted = Ciphertexts::encrypt(evaluator.encryptor(), &numbers)?;

    let doubled = evaluator.add(&encrypted, &encrypted)?;
    let score = evaluator.dot(&encrypted, &Weights::integers(&[10i64, 20, 30][..]))?;
    let score = evaluator.rerandomise(&score)?;

    let decryptor = Decryptor::new(&secret, &device)?;
    for (name, batch) in [("twice 3, -4, 5", &doubled), ("10, 20, 30 times 3, -4, 5", &score)] {
        let plaintexts =
            Plaintexts::decrypt(&decryptor, &batch.numbers(evaluator.encryptor())?, batch.form())?;
        println!("{name}: {:?}", plaintexts.to_i64()?);
    }
    Ok(())
}
