//! Messages of a proxy transfer, to each of the three roles: read or refused, never a panic.
#![no_main]
use blindcore_circuit::ot::proxy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [to, mask, rest @ ..] = data else { return };
    let sender = proxy::Sender::new().unwrap();
    let publication = sender.publish();
    let chosen = proxy::choose(&publication, &[true, false]).unwrap();
    // An honest message with the input's bytes over it, or the input alone.
    let laid_over = |honest: &[u8]| -> Vec<u8> {
        if *mask & 1 == 0 {
            return rest.to_vec();
        }
        let mut bytes = honest.to_vec();
        bytes.iter_mut().zip(rest).for_each(|(byte, other)| *byte ^= other);
        bytes.truncate(honest.len().saturating_sub(usize::from(*mask >> 4)));
        bytes
    };
    match to % 4 {
        0 => {
            let _ = proxy::choose(&laid_over(&publication), &[true; 3]);
        }
        1 => {
            let _ = sender.encrypt(&laid_over(&chosen.for_sender), &[[1, 2], [3, 4]]);
        }
        2 => {
            let sealed = sender.encrypt(&chosen.for_sender, &[[1, 2], [3, 4]]).unwrap();
            if let Ok(opened) = proxy::open(&chosen.for_proxy, &laid_over(&sealed)) {
                assert_eq!(opened.len(), 2);
            }
        }
        _ => {
            let sealed = sender.encrypt(&chosen.for_sender, &[[1, 2], [3, 4]]).unwrap();
            let _ = proxy::open(&laid_over(&chosen.for_proxy), &sealed);
        }
    }
});
