//! Paillier: add and weigh encrypted numbers, on whichever device does big modular arithmetic fastest.
//!
//! ```text
//!   numbers ──encoding──▶ Plaintexts ──Encryptor──▶ Ciphertexts ──Evaluator──▶ Ciphertexts ──Decryptor──▶ numbers
//!             packing      below n       public key                public key                 secret key
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`keys`] | keys in three modes, validated wherever they are loaded |
//! | [`scheme`] | encryption, decryption by CRT that checks itself, rerandomisation |
//! | [`encoding`], [`packing`] | integers and floats as plaintexts, many small ones in one, with bounds that are tracked |
//! | [`ciphertexts`], [`evaluate`] | batches; sums, dot products, matrices, convolutions |
//! | [`mod@file`], [`phe`] | the file of ciphertexts; the JSON of python-paillier |
//! | [`disk`], [`numbers`], [`model`] | keys and ciphertexts on the disk; arrays of numbers encrypted and decrypted; linear models |
//!
//! ```
//! use blindcore_accel_cpu::Cpu;
//! use blindcore_sum::ciphertexts::Ciphertexts;
//! use blindcore_sum::encoding::{Encoding, Plaintexts};
//! use blindcore_sum::evaluate::{Evaluator, Weights};
//! use blindcore_sum::keys::{KeySize, Mode, SecretKey};
//! use blindcore_sum::scheme::Decryptor;
//!
//! let device = Cpu::open("cpu")?;
//! let secret = SecretKey::generate(KeySize::test_only(512)?, Mode::ShortExponent)?; // 3072 for use
//!
//! // The owner of the numbers encrypts them, each of at most 8 bits.
//! let evaluator = Evaluator::new(secret.public(), &device)?;
//! let plaintexts = Plaintexts::integers(secret.public(), &[3, -4, 5], Encoding::integers(8)?)?;
//! let encrypted = Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts)?;
//!
//! // The evaluator has the weights and never sees the numbers; what goes back is rerandomised.
//! let score = evaluator.dot(&encrypted, &Weights::integers(&[10i64, 20, 30][..]))?;
//! let score = evaluator.rerandomise(&score)?;
//!
//! let decryptor = Decryptor::new(&secret, &device)?;
//! let numbers = score.numbers(evaluator.encryptor())?;
//! let result = Plaintexts::decrypt(&decryptor, &numbers, score.form())?;
//! assert_eq!(result.to_i64()?, [3 * 10 - 4 * 20 + 5 * 30]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod ciphertexts;
pub mod disk;
pub mod encoding;
pub mod evaluate;
pub mod file;
pub mod keys;
pub mod model;
pub mod numbers;
pub mod packing;
pub mod phe;
pub mod scheme;
