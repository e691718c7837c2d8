//! What a table costs under each scheme, which of them `db build` takes, and why.

use blindcore_lookup::{Error, QUERIES_PER_HINT, SchemeChoice, SchemeRef, schemes};
use blindcore_units::{bytes, count, figure, seconds};
use serde_json::{Value, json};

use crate::cost::{Costs, Table, Whole};
use crate::question::Question;
use crate::rates::Rates;

/// A scheme for the table, with what it takes, or why it can't be.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The scheme.
    pub scheme: SchemeRef,
    /// The table and its costs, or why this scheme can't hold it.
    pub of: Result<(Table, Costs), String>,
}

/// What a table would cost to serve and to look up.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The table and its clients.
    pub question: Question,
    /// The machine.
    pub rates: Rates,
    /// Each scheme that is offered, possible or not.
    pub candidates: Vec<Candidate>,
    /// Which of them `db build` takes.
    pub chosen: usize,
    /// Memory of the machine that was measured, where it is known.
    memory_bytes: Option<u64>,
}

impl Plan {
    /// Plans a table for a machine with these rates under the schemes that a service would choose between. `memory_bytes` is that
    /// machine's memory, if it is known.
    ///
    /// # Errors
    /// No scheme holds such a table.
    pub fn new(question: Question, rates: Rates, memory_bytes: Option<u64>) -> Result<Self, Error> {
        Self::under(schemes::usual(), question, rates, memory_bytes)
    }

    /// The same under these schemes; what `db build` takes must be among them.
    ///
    /// # Errors
    /// No scheme holds such a table.
    pub fn under(
        schemes: Vec<SchemeRef>,
        question: Question,
        rates: Rates,
        memory_bytes: Option<u64>,
    ) -> Result<Self, Error> {
        let candidates = schemes.into_iter().map(|scheme| Candidate {
            scheme,
            of: Table::new(&question, SchemeChoice::Only(scheme))
                .map(|table| (table, table.costs(&question, &rates)))
                .map_err(|e| e.to_string()),
        });
        let candidates: Vec<Candidate> = candidates.collect();
        let built = Table::new(&question, SchemeChoice::Auto)?.records.scheme;
        let chosen = candidates.iter().position(|c| c.scheme == built).expect("what is built is offered");
        Ok(Self { question, rates, candidates, chosen, memory_bytes })
    }

    /// The chosen candidate, which there is.
    #[must_use]
    pub fn built(&self) -> (&Table, &Costs) {
        let (table, costs) = self.candidates[self.chosen].of.as_ref().expect("what is built can be");
        (table, costs)
    }

    /// The other candidates.
    pub fn others(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().enumerate().filter(|(i, _)| *i != self.chosen).map(|(_, candidate)| candidate)
    }

    /// Why `db build` takes this scheme.
    #[must_use]
    pub fn reason(&self) -> String {
        let (table, _) = self.built();
        let mut moves = false;
        let because: Vec<String> = self
            .others()
            .map(|other| match &other.of {
                Err(why) => format!("{} can't be: {why}", other.scheme.title()),
                Ok((that, _)) => {
                    let by_name = if other.scheme.registers_keys() {
                        " with a client's keys, which the server has to keep, and is taken where clients are known (--scheme known)"
                    } else {
                        ""
                    };
                    let moved = bytes(that.bytes_to_choose_by());
                    let would = format!("{} would move {moved}{by_name}", other.scheme.title());
                    if std::mem::replace(&mut moves, true) {
                        return would;
                    }
                    let moved = bytes(table.bytes_to_choose_by());
                    format!("a lookup moves {moved} with 1/{QUERIES_PER_HINT} of the hint, and {would}")
                }
            })
            .collect();
        let whole = bytes(Whole::new(&self.question).bytes / QUERIES_PER_HINT);
        let because: Vec<String> = because
            .into_iter()
            .chain([format!("the whole table, sent once for {QUERIES_PER_HINT} lookups, is {whole} each")])
            .collect();
        let name = table.records.scheme.title();
        format!("{name}, because {}", because.join("; "))
    }

    /// What suits these clients better, if anything does.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let (_, costs) = self.built();
        let whole = Whole::new(&self.question);
        if whole.seconds / (self.question.queries as f64) < 0.9 * costs.wait_seconds
            && whole.million < costs.million.total
        {
            return Some(format!(
                "for these clients no scheme is needed: the whole table is {}, fetched in {}; send it to each of them, and the \
                 server learns nothing either",
                bytes(whole.bytes),
                seconds(whole.seconds)
            ));
        }
        let possible = self.others().filter_map(|other| Some((other.scheme, &other.of.as_ref().ok()?.1)));
        let (scheme, that) = possible.min_by(|a, b| a.1.wait_seconds.total_cmp(&b.1.wait_seconds))?;
        (that.wait_seconds < 0.9 * costs.wait_seconds).then(|| {
            format!(
                "for these clients {} is better: {} a lookup with its share of the hint, and not {}; build with `db \
                 build --scheme {scheme}`",
                scheme.title(),
                seconds(that.wait_seconds),
                seconds(costs.wait_seconds),
            )
        })
    }

    /// What is out of the ordinary.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let (table, costs) = self.built();
        let q = &self.question;
        let mut notes = Vec::new();
        if table.blocks > 1 {
            notes.push(format!(
                "records over {} don't fit a slot: `db build` cuts them into {} blocks of {} B, and a lookup asks {} queries",
                bytes(blindcore_lookup::MAX_RECORD_BYTES as u64),
                table.blocks,
                table.block_bytes,
                table.blocks
            ));
        }
        if q.batch.is_some() && table.batches.is_none() {
            notes.push(format!(
                "`db build` makes no batches for this table: they are of keys, of records of one slot, and of schemes without a hint \
                 ({})",
                schemes::option_without_hint()
            ));
        }
        let load = &costs.load;
        notes.push(format!(
            "{} lookups per second: {} in a pass, {:.1} % of the time of {} like this one",
            figure(load.lookups),
            if load.gathered == 1 { "one query".into() } else { format!("{} queries", load.gathered) },
            100.0 * load.busy,
            if load.servers == 1.0 { "one machine".into() } else { format!("{} machines", load.servers) }
        ));
        if self.memory_bytes.is_some_and(|memory| costs.memory_bytes > memory / 10 * 9) {
            notes.push("this machine does not have that much memory".into());
        }
        notes.push(match table.changes(q) {
            Some(c) => format!(
                "with changed rows looked up beside it, a database is best built every {} epochs (up to {} rows beside \
                 it): a client moves {} an epoch, and {} where it is rebuilt in each",
                c.epochs,
                count(c.rows),
                bytes(c.bytes),
                bytes(c.bytes_anew)
            ),
            None if q.changed == 0.0 => "no row changes, so the hint of one epoch serves the next".into(),
            None => "this many rows change that the database is best rebuilt in each epoch".into(),
        });
        notes
    }

    /// The whole plan as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let candidate = |i: usize| match &self.candidates[i].of {
            Err(why) => json!({"scheme": self.candidates[i].scheme, "chosen": false, "impossible": why}),
            Ok((table, costs)) => {
                let g = &table.records.geometry;
                let mut value = json!({
                    "scheme": self.candidates[i].scheme, "chosen": i == self.chosen,
                    "blocks": table.blocks, "block_bytes": table.block_bytes,
                    "slot_bytes": g.record_bytes, "groups": g.groups, "rows": g.rows(), "columns": g.columns,
                    "security_bits": table.records.security().map(|s| s.bits),
                    "quantum_bits": table.records.security().and_then(|s| s.quantum_bits), "proofs": table.roots.is_some(),
                });
                let costs = serde_json::to_value(costs).expect("numbers are JSON");
                let fields = value.as_object_mut().expect("made as one");
                fields.extend(costs.as_object().expect("a struct").clone());
                value
            }
        };
        let (table, _) = self.built();
        json!({
            "question": self.question,
            "estimator": table.records.security().map(|s| s.estimator),
            "rates": self.rates,
            "candidates": (0..self.candidates.len()).map(candidate).collect::<Vec<_>>(),
            "chosen": self.candidates[self.chosen].scheme,
            "reason": self.reason(),
            "advice": self.advice(),
            "whole_table": Whole::new(&self.question),
            "changes": table.changes(&self.question),
            "notes": self.notes(),
        })
    }
}
