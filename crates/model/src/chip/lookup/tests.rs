//! Fused lookups beside a case that was worked out by hand, beside those that carry, and beside what each bound says.

use super::super::{Dim, Lanes, Level, Moduli, Ports, Price, Rate, machine};
use super::*;

/// A machine that a person can follow: a disk of a word a clock each way, a memory of `bytes`, and a lane of everything.
fn small(bytes: u64) -> Machine {
    let level = |name: &str, bytes, port: u64| Level {
        name: name.into(),
        bytes,
        count: 1,
        port: Rate::whole(64 * port),
        ports: Ports::Separate { read: 1, write: 1 },
        buffers: 1,
        part: String::new(),
        off_chip: false,
    };
    Machine {
        name: "small".into(),
        about: String::new(),
        clock: 1e9,
        word: 64,
        levels: vec![level("disk", None, 1), level("memory", Some(bytes), 1 << 20)],
        lanes: Lanes {
            name: "lanes".into(),
            word: 64,
            count: 1,
            rates: [Some(Rate::whole(1 << 20)), Some(Rate::whole(1 << 20)), None, None],
            latched: false,
            fill: 0,
            part: String::new(),
        },
        beside: Vec::new(),
        moduli: Moduli { held: None, change: 0 },
        pipeline: None,
    }
}

/// A pass of 2 rows by 4 outputs over 8 coefficients: A has 16 words, B 64, C 32.
fn work(transforms: u64) -> Lookup {
    let problem = Problem::contract([1, 4, 1, 1, 2, 1, 1, 8]);
    let pass = Pass { over: "b", problem, times: 1, expanded: true, turned: false };
    Lookup { scheme: "by hand", queries: 1, passes: vec![pass], transforms }
}

#[test]
fn what_stays_on_the_chip_is_not_carried() {
    let chip = small(1 << 30);
    let answer = |ring| work(1).answer(&chip, &[], ring).unwrap();
    let bits = |answered: &Answered| {
        let disk = answered.cost.level("disk").unwrap();
        (disk.read / 64, disk.written / 64)
    };
    // Carried: A and B are read and C is written; transforms write A and read C. A transform fits the memory, and reads and writes 2,048
    // words at a port of 2^20, so a clock each way.
    let carried = answer(Ring::Carried);
    assert_eq!(bits(&carried), (16 + 64 + 32, 32 + 16));
    assert_eq!(carried.cost.bound("disk read"), 112);
    // In turn: the pass reads 80 words, then transforms read 32 while they write 16, then they work for a clock.
    assert_eq!(carried.cost.cycles, 80 + 32 + 1);
    // Fused: B alone is read, and nothing written.
    let fused = answer(Ring::Fused);
    assert_eq!((bits(&fused), fused.between), ((64, 0), 1));
    assert_eq!((fused.cost.bound("disk read"), fused.cost.cycles), (64, 64 + 1));
    assert!((fused.per_second() - 1e9 / 64.0).abs() < 1.0);
    // A machine beside it does the transforms in a clock of its own; A and C come and go.
    let elsewhere = answer(Ring::Elsewhere(&chip));
    assert_eq!((bits(&elsewhere), elsewhere.cost.bound("small")), ((80, 32), 1));
}

#[test]
fn without_transforms_or_room_there_is_nothing_to_gain() {
    let chip = small(1 << 30);
    // Nothing between: a chip that only passes reads A and writes C whatever it is called.
    let plain = Lookup { passes: vec![Pass { expanded: false, ..work(0).passes[0].clone() }], ..work(0) };
    let [fused, carried] =
        [Ring::Fused, Ring::Carried].map(|ring| plain.answer(&chip, &[], ring).unwrap().cost.cycles);
    assert_eq!(fused, carried);
    // Room for a tile, and not for A and C whole: it is as if they were carried.
    let [tight, room] = [256u64, 100].map(small);
    let pass =
        |chip: &Machine, ring| work(0).passes[0].staying(chip, &[], ring, false).map(|(_, cost)| cost.cycles);
    assert_eq!(
        pass(&tight, 1).unwrap_err().to_string(),
        "no mapping fits small: memory has 256 bytes; make the smallest levels larger"
    );
    assert_eq!(pass(&tight, 0).unwrap(), 80);
    assert!(pass(&room, 0).is_ok());
}

#[test]
fn what_is_fused_never_takes_longer() {
    let tables = Tables::shipped_all();
    for (scheme, queries) in [("hintless", 1), ("hintless", 16), ("onionpir2", 1), ("onionpir2", 5)] {
        let lookup = Lookup::named(scheme, 1 << 18, 256, queries).unwrap();
        assert!(lookup.transforms > 0 && !lookup.passes.is_empty(), "{lookup:?}");
        for name in ["next-ssd", "next-gddr", "next-hbm", "h200", "xeon"] {
            let chip = machine(name).unwrap();
            let answer = |ring| lookup.answer(&chip, &tables, ring).unwrap();
            let (fused, carried) = (answer(Ring::Fused), answer(Ring::Carried));
            let case = format!("{scheme} on {name}");
            assert!(fused.cost.cycles <= carried.cost.cycles, "{case}");
            assert!(fused.per_second() >= carried.per_second() * 0.999, "{case}");
            // Nothing is left out of either: all of B is read, and all butterflies are done.
            assert_eq!(fused.cost.butterflies, carried.cost.butterflies, "{case}");
            let read = fused.cost.traffic[0].read;
            assert!(read >= lookup.database_bytes() * 8, "{case}: {read}");
            let joules = |answered: &Answered| answered.cost.prices.first().map_or(0.0, Price::joules);
            assert!(joules(&fused) >= 0.0);
        }
    }
}

/// Of resources doubled that of the bound that holds makes it faster; the other ports and lanes do not.
#[test]
fn the_bound_that_holds_is_the_one_that_moves_the_figure() {
    let mut held = Vec::new();
    for (scheme, queries, name) in [
        ("onionpir2", 1, "next-ssd"),
        ("onionpir2", 16, "next-hbm"),
        ("hintless", 1, "next-ssd"),
        ("hintless", 16, "next-hbm"),
    ] {
        let lookup = Lookup::named(scheme, 1 << 18, 256, queries).unwrap();
        let chip = machine(name).unwrap();
        let rate = |chip: &Machine| lookup.answer(chip, &[], Ring::Fused).unwrap();
        let now = rate(&chip);
        let holds = now.cost.holds().to_owned();
        for (what, more) in more(&chip) {
            let gain = rate(&more).per_second() / now.per_second();
            let of = what.trim_end_matches(" rate");
            if what != "clock" && !what.ends_with(" size") && !what.contains("of all kinds") {
                let is = holds.starts_with(of);
                assert_eq!(
                    gain > 1.005,
                    is,
                    "{scheme} on {name}: {holds}, and twice the {what} gives {gain}"
                );
            }
        }
        held.push(holds);
    }
    held.dedup();
    assert!(held.len() > 1, "{held:?}");
}

#[test]
fn a_lookup_has_the_passes_of_its_scheme() {
    let lookup = Lookup::named("onionpir2", 1 << 22, 256, 16).unwrap();
    let [pass] = &lookup.passes[..] else { panic!("{lookup:?}") };
    // 2,048 outputs of two parts each over 223 rows, which 224 stand for; a prime of 40 bits, in five bytes.
    let problem = &pass.problem;
    assert_eq!((problem.bound(Dim::C), problem.bound(Dim::D), problem.bits), (1, 2048, [40; 3]));
    // A pass's result has room for eight queries of 2,048 outputs, so there are two passes.
    let queries = problem.bound(Dim::M) * pass.times;
    assert_eq!((queries, problem.bound(Dim::P), pass.expanded), (16, 2, true));
    let stored = lookup.database_bytes() as f64 / f64::from(1 << 30);
    assert!((3.5..4.3).contains(&stored), "{stored}");
    let hintless = Lookup::named("hintless", 1 << 22, 256, 1).unwrap();
    let over: Vec<_> = hintless.passes.iter().map(|pass| (pass.over, pass.expanded, pass.turned)).collect();
    assert_eq!(over, [("records", false, false), ("packing tables", false, true)]);
    assert!(Lookup::named("none", 1, 1, 1).is_err() && Lookup::named("hintless", 1 << 20, 256, 0).is_err());
}
