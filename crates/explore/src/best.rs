//! Each problem's best machine: what it does for a dollar, which bound holds, what pays next, and what other machines do.

use blindcore_model::chip::{Answered, Lookup, Machine, Misfit, Ring, more, reached};
use serde::Serialize;
use serde_json::{Value, json};

use crate::plot::{Axis, Plot, Series};
use crate::point::answer;
use crate::sweep::{Point, Sweep, Work};
use crate::table::Table;

/// What a machine does with lookups.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Lookups per second, one behind the other without a gap.
    pub per_second: f64,
    /// Seconds from a query to its answer, of all that are gathered.
    pub seconds: f64,
    /// Which bound holds.
    pub holds: String,
    /// Joules a lookup.
    pub joules: Vec<Joules>,
    /// Dollars.
    pub dollars: f64,
}

/// Joules a lookup, and how they came about.
#[derive(Clone, Debug, Serialize)]
pub struct Joules {
    /// A table, or `watts` where they are those of the whole machine as its price list has them, for as long as the bound that holds takes.
    pub by: String,
    /// `calibrated`, `synthesised`, `tables`, or `watts`.
    pub kind: String,
    /// Joules; none: the table has not all parts.
    pub value: Option<f64>,
    /// Parts that the table has not.
    pub without: Vec<String>,
}

/// Another machine with the same work.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// The machine.
    pub machine: String,
    /// What it does; or why it does not.
    pub figures: Result<Figures, String>,
}

/// One resource doubled.
#[derive(Clone, Debug, Serialize)]
pub struct Next {
    /// The resource, or an axis of the sweep.
    pub what: String,
    /// How many times as many lookups per second.
    pub gain: f64,
    /// The same for each dollar.
    pub gain_per_dollar: f64,
}

/// A problem's best machine.
#[derive(Clone, Debug, Serialize)]
pub struct Best {
    /// The problem.
    pub problem: String,
    /// GiB of its records.
    pub gib: Option<f64>,
    /// The machine that axes changed.
    pub machine: String,
    /// The axes' values.
    pub axes: Vec<(String, u64)>,
    /// Square millimetres by each table, of the parts that it has.
    pub mm2: Vec<(String, f64)>,
    /// What it does: everything on the chip, and what goes between passes and transforms stays there.
    pub figures: Figures,
    /// The outermost level, in which the table lies.
    pub outermost: String,
    /// Levels in which these stay, and in which transforms work.
    pub levels: [String; 2],
    /// What pays next, the most for each dollar first; those that gain nothing are left out.
    pub next: Vec<Next>,
    /// Lookups per second and seconds of one, where what goes between goes through the outermost level.
    pub carried: [f64; 2],
    /// The same where another machine does the transforms.
    pub elsewhere: Option<[f64; 2]>,
    /// Lookups per second at the clock that synthesis reached, that clock, and in what.
    pub synthesised: Option<(f64, f64, String)>,
    /// Other machines.
    pub beside: Vec<Beside>,
}

impl Figures {
    /// Lookups per second for a thousand dollars.
    #[must_use]
    pub fn per_kilodollar(&self) -> f64 {
        1000.0 * self.per_second / self.dollars
    }

    fn new(sweep: &Sweep, machine: &Machine, answered: &Answered) -> Result<Self, String> {
        let prices = sweep.prices.as_ref().ok_or("the sweep has no prices")?;
        let (lookups, per_second) = (answered.queries as f64, answered.per_second());
        let joules = match prices.whole(&machine.name) {
            Some(whole) => {
                let value = Some(whole.watts / per_second);
                vec![Joules { by: "watts".into(), kind: "watts".into(), value, without: Vec::new() }]
            }
            None => {
                let each = answered.cost.prices.iter().map(|price| {
                    let without: Vec<String> = price.missing().iter().map(|part| (*part).into()).collect();
                    let kind = json!(price.kind).as_str().unwrap_or_default().to_owned();
                    Joules { by: price.table.clone(), kind, value: Some(price.joules() / lookups), without }
                });
                each.collect()
            }
        };
        let holds = answered.cost.holds().to_owned();
        let dollars = prices.dollars(machine)?;
        Ok(Self { per_second, seconds: answered.cost.seconds, holds, joules, dollars })
    }

    /// The first of the joules, which ranks.
    fn joules(&self) -> Option<&Joules> {
        self.joules.first()
    }
}

/// The best machine of each problem that is lookups: the most lookups per second for each dollar, then the fewest joules. None where a sweep
/// has no prices.
///
/// # Errors
/// A machine can't be computed again that was computed: report it.
pub(crate) fn best(sweep: &Sweep, table: &Table) -> anyhow::Result<Vec<Best>> {
    let lookups = sweep.cases.iter().any(|case| matches!(case.work, Work::Lookup(_)));
    if sweep.prices.is_none() || !lookups {
        return Ok(Vec::new());
    }
    let points = sweep.points()?;
    let numbers = |column: &str| table.numbers(column);
    let (rates, joules, dollars) = (numbers("lookups_s"), numbers("joules_lookup"), numbers("dollars"));
    let mut all = Vec::new();
    for (at, case) in sweep.cases.iter().enumerate() {
        let Work::Lookup(lookup) = &case.work else { continue };
        let figures = |row: &usize| Some((rates[*row]? / dollars[*row]?, -joules[*row]?));
        let rows = (0..points.len()).filter(|row| points[*row].case == at && figures(row).is_some());
        let better =
            |a: &usize, b: &usize| figures(a).partial_cmp(&figures(b)).unwrap_or(std::cmp::Ordering::Equal);
        let Some(row) = rows.max_by(better) else { continue };
        let axes =
            sweep.axes.iter().zip(&points[row].values).map(|(axis, value)| (axis.name.clone(), *value));
        let one = one(sweep, lookup, &points[row])?;
        all.push(Best { problem: case.name.clone(), gib: case.gib, axes: axes.collect(), ..one });
    }
    Ok(all)
}

/// All that is said of a machine.
fn one(sweep: &Sweep, lookup: &Lookup, point: &Point) -> anyhow::Result<Best> {
    let machine = &sweep.machine_of(point)?;
    let answered = answer(sweep, lookup, machine)?;
    let figures = Figures::new(sweep, machine, &answered).map_err(anyhow::Error::msg)?;
    let of = |ring: Ring<'_>| -> Result<[f64; 2], Misfit> {
        let answered = lookup.answer(machine, &sweep.tables, ring)?;
        Ok([answered.per_second(), answered.cost.seconds])
    };
    let mut next = Vec::new();
    let axes = sweep.axes.iter().enumerate().filter_map(|(at, axis)| {
        let mut point = point.clone();
        point.values[at] = point.values[at].saturating_mul(2);
        Some((format!("{} (axis)", axis.name), sweep.machine_of(&point).ok()?))
    });
    for (what, more) in more(machine).into_iter().chain(axes) {
        // What has no mapping, or outgrows a die, gains nothing.
        let Ok(doubled) = answer(sweep, lookup, &more) else { continue };
        let Ok(more) = Figures::new(sweep, &more, &doubled) else { continue };
        let gain = more.per_second / figures.per_second;
        if gain > 1.005 {
            next.push(Next { what, gain, gain_per_dollar: more.per_kilodollar() / figures.per_kilodollar() });
        }
    }
    next.sort_by(|a, b| b.gain_per_dollar.total_cmp(&a.gain_per_dollar).then(b.gain.total_cmp(&a.gain)));
    let reached = reached(&machine.lanes.part).map(|reached| {
        let slower = answer(sweep, lookup, &machine.at_clock(reached.clock));
        slower.map(|answered| (answered.per_second(), reached.clock, reached.table))
    });
    let beside = sweep.beside.iter().map(|other| {
        let figures = answer(sweep, lookup, other).map_err(|misfit| misfit.to_string());
        let figures = figures.and_then(|answered| Figures::new(sweep, other, &answered));
        Beside { machine: other.name.clone(), figures }
    });
    let level = |at: Option<usize>| at.map_or("-".into(), |at| machine.levels[at].name.clone());
    Ok(Best {
        problem: String::new(),
        gib: None,
        machine: machine.name.clone(),
        axes: Vec::new(),
        mm2: answered.cost.prices.iter().map(|price| (price.table.clone(), price.mm2())).collect(),
        figures,
        outermost: level(Some(0)),
        levels: [level(Some(answered.between)), level(answered.transforms)],
        next,
        carried: of(Ring::Carried)?,
        elsewhere: sweep.host.as_ref().map(|host| of(Ring::Elsewhere(host))).transpose()?,
        synthesised: reached.transpose()?,
        beside: beside.collect(),
    })
}

/// The best machines for programs, with the prices.
pub(crate) fn document(sweep: &Sweep, best: &[Best]) -> Value {
    json!({"prices": sweep.prices, "machines": best})
}

/// A number with three digits that count.
fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        1e6.. => format!("{x:.2e}"),
        100.0.. => format!("{x:.0}"),
        10.0.. => format!("{x:.1}"),
        1.0.. => format!("{x:.2}"),
        0.001.. => format!("{:.*}", (2.0 - x.abs().log10().floor()) as usize, x),
        _ => format!("{x:.2e}"),
    }
}

/// The best machines for people.
pub(crate) fn text(sweep: &Sweep, best: &[Best]) -> String {
    let mut text = format!(
        "{}\nBest: the most lookups per second for each dollar. Joules by the table {}; prices by {}. A chip's dollars are its parts', without design, masks \
         and profit, and its joules what moves and computes; another machine's dollars are what is asked for it, its joules all its watts while its \
         bound holds. Clocks of chips are the thesis's, 2 GHz, but where it says synthesis.\n",
        sweep.about,
        sweep.tables.first().map_or("-", |table| table.name.as_str()),
        sweep.prices.as_ref().map_or("-", |prices| prices.name.as_str()),
    );
    for best in best {
        let axes =
            best.axes.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
        let mm2 = best
            .mm2
            .iter()
            .map(|(table, mm2)| format!("{} {table}", short(*mm2)))
            .collect::<Vec<_>>()
            .join(", ");
        text += &format!("\n{}: {} with {axes}; mm2: {mm2}\n", best.problem, best.machine);
        text += &format!(
            "  {:26} {:>10} {:>10} {:>10} {:>10}  limit\n",
            "", "lookups/s", "J/lookup", "dollars", "/s/1000 $"
        );
        let line = |name: &str, figures: &Figures| {
            let joules = figures.joules().and_then(|j| j.value).map_or("-".into(), short);
            format!(
                "  {name:26} {:>10} {joules:>10} {:>10} {:>10}  {}\n",
                short(figures.per_second),
                format!("{:.0}", figures.dollars),
                short(figures.per_kilodollar()),
                figures.holds
            )
        };
        text += &line("this chip", &best.figures);
        for beside in &best.beside {
            match &beside.figures {
                Ok(figures) => text += &line(&beside.machine, figures),
                Err(why) => text += &format!("  {:26} {why}\n", beside.machine),
            }
        }
        let joules = best.figures.joules.iter().map(|joules| {
            let without = if joules.without.is_empty() {
                String::new()
            } else {
                format!(" without {}", joules.without.join(", "))
            };
            format!("{} {} ({}{without})", joules.value.map_or("-".into(), short), joules.by, joules.kind)
        });
        text += &format!("  joules a lookup: {}\n", joules.collect::<Vec<_>>().join("; "));
        let rate = |[per_second, seconds]: [f64; 2]| {
            format!("{} per second, {} s for one pass", short(per_second), short(seconds))
        };
        text += &format!(
            "  fused, with what goes between in {} and transforms in {}: {}; carried through the {}: {}",
            best.levels[0],
            best.levels[1],
            rate([best.figures.per_second, best.figures.seconds]),
            best.outermost,
            rate(best.carried)
        );
        if let (Some(host), Some(elsewhere)) = (&sweep.host, best.elsewhere) {
            text += &format!("; transforms on {}: {}", host.name, rate(elsewhere));
        }
        if let Some((per_second, clock, library)) = &best.synthesised {
            let (mhz, per_second) = (clock / 1e6, short(*per_second));
            text += &format!(
                "\n  at {mhz:.1} MHz, which synthesis in {library} reached: {per_second} per second"
            );
        }
        let next = best.next.iter().take(3).map(|next| {
            format!(
                "twice the {}: {:.2} times ({:.2} for each dollar)",
                next.what, next.gain, next.gain_per_dollar
            )
        });
        let next = next.collect::<Vec<_>>().join("; ");
        text += &format!("\n  what pays next: {}\n", if next.is_empty() { "nothing alone" } else { &next });
    }
    let lookups = sweep.cases.iter().filter(|case| matches!(case.work, Work::Lookup(_)));
    for case in lookups.filter(|c| best.iter().all(|b| (&b.problem, b.gib) != (&c.name, c.gib))) {
        text += &format!(
            "\n{}: no machine of the sweep does it; the results' column misfit says why\n",
            case.name
        );
    }
    text
}

/// Joules a lookup against lookups per second for a thousand dollars, of the best machines and of those beside them.
pub(crate) fn plot(sweep: &Sweep, best: &[Best]) -> Option<Plot> {
    let mut series: Vec<Series> = Vec::new();
    let mut add = |name: &str, figures: &Figures| {
        let Some(joules) = figures.joules().and_then(|j| j.value) else { return };
        let point = (figures.per_kilodollar(), joules);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: name.into(), points: vec![point], line: false }),
        }
    };
    for best in best {
        add(&best.machine, &best.figures);
        for beside in &best.beside {
            beside.figures.iter().for_each(|figures| add(&beside.machine, figures));
        }
    }
    let axis = |label: &str| Axis { label: label.into(), log: true, zero: false };
    let (x, y) = (axis("lookups per second for 1000 dollars"), axis("joules a lookup"));
    let title = format!("{}: every problem's best chip", sweep.name);
    let plot = Plot { name: format!("{}-best", sweep.name), title, x, y, series };
    (!plot.series.is_empty()).then_some(plot)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Options, run};

    #[test]
    fn the_best_machine_does_most_for_a_dollar_and_says_what_pays_next() {
        let text = "name = 's'\nabout = 'x'\nmachine = 'next-ssd'\ntables = ['published']\nprices = '2026'\nbeside = ['xeon']\n\
            host = 'xeon'\n[[problem]]\nname = 'one'\nlookup = 'onionpir2'\ngib = [0.0625]\n[[axis]]\nname = 'devices'\n\
            set = ['SSD.devices', 'DRAM.devices', 'HBM.devices']\nvalues = [1, 2]\n[[axis]]\nname = 'lanes'\n\
            set = ['RF.count', 'lanes.count', 'narrow.count * 8']\nvalues = [2, 16]\n[[problem]]\nname = 'other'\n\
            lookup = 'hintless'\ngib = [0.0625]\nmachine = 'next-hbm'\n";
        let sweep = Sweep::from_toml(Path::new("s.toml"), text).unwrap();
        let options = Options { threads: Some(1), ..Options::default() };
        let results = run(&sweep, &options, &mut ()).unwrap();
        let [best, other] = &results.best[..] else { panic!("{:?}", results.best) };
        assert_eq!((best.problem.as_str(), other.machine.as_str()), ("one", "next-hbm"));
        let (rates, dollars) = (results.table.numbers("lookups_s"), results.table.numbers("dollars"));
        let most = (0..4).filter_map(|row| Some(1000.0 * rates[row]? / dollars[row]?)).fold(0.0, f64::max);
        assert!((best.figures.per_kilodollar() / most - 1.0).abs() < 1e-12);
        // What is said to gain does: the machine with twice as much, by itself.
        assert!(!best.next.is_empty());
        for next in &best.next {
            assert!(next.gain > 1.0, "{next:?}");
        }
        assert!(best.figures.per_second >= best.carried[0] * 0.999 && best.elsewhere.is_some());
        let xeon = best.beside[0].figures.as_ref().unwrap();
        assert_eq!((xeon.joules[0].kind.as_str(), xeon.dollars), ("watts", 500.0));
        let said = super::text(&sweep, &results.best);
        for part in
            ["one: next-ssd with devices", "xeon", "what pays next: twice the", best.figures.holds.as_str()]
        {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert_eq!(super::document(&sweep, &results.best)["machines"][1]["problem"], "other");
        assert!(super::plot(&sweep, &results.best).unwrap().svg().unwrap().contains("next-hbm"));
        // A sweep without prices has none, and a machine that has none is refused.
        let read = |from: &str, to: &str| Sweep::from_toml(Path::new("s.toml"), &text.replacen(from, to, 1));
        assert!(run(&read("prices = '2026'", "").unwrap(), &options, &mut ()).unwrap().best.is_empty());
        for (from, to, part) in [
            ("'xeon'", "'h100'", "machine h100: prices 2026 have no [[device]]"),
            ("'onionpir2'", "'onion'", "problem one: lookup is \"onion\""),
            ("narrow.count * 8", "narrow.count * x", "axis lanes: narrow.count * x can't be set"),
            ("HBM.devices", "GDDR.devices", "axis devices: GDDR.devices can't be set"),
        ] {
            let error = read(from, to).unwrap_err().to_string();
            assert!(error.contains(part) && error.lines().count() == 1, "{error}, not {part}");
        }
    }
}
