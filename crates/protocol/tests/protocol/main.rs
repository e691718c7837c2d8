//! The client without I/O, driven against servers in the same process: honest ones, and ones that lie.

mod driver;
mod hostile;
mod lookups;
mod made;
mod registered;

mod properties {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn a_server_may_do_anything(data in proptest::collection::vec(any::<u8>(), 0..400)) {
            crate::hostile::run(&data);
        }
    }

    /// What fuzzing starts from.
    #[test]
    fn seeds_of_the_fuzz_target_pass() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/protocol");
        let mut count = 0;
        for seed in std::fs::read_dir(seeds).unwrap() {
            crate::hostile::run(&std::fs::read(seed.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0);
    }
}
