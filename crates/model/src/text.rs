//! A plan as people read it.

use blindcore_units::{bytes, count, figure, seconds};

use crate::batches::BatchCosts;
use crate::cost::{Costs, Table, Whole};
use crate::plan::Plan;

impl Plan {
    /// The whole plan as a table of text, a column for each scheme.
    #[must_use]
    pub fn text(&self) -> String {
        let q = &self.question;
        let found = match q.key_bytes {
            Some(bytes) => {
                format!(
                    "found by a key of up to {bytes} B{}",
                    if q.directory { " or by row number" } else { "" }
                )
            }
            None => "found by row number".into(),
        };
        let mut text = format!(
            "{} rows of up to {}, {found}\n{} clients with {} lookups each in an epoch of {}; {} Mbit/s up, {} down\n\
         rates of {} on {}, {} threads\n\n",
            count(q.rows),
            bytes(q.record_bytes),
            count(q.clients),
            count(q.queries),
            seconds(q.epoch),
            q.up / 1e6,
            q.down / 1e6,
            self.rates.processor,
            self.rates.device,
            self.rates.threads
        );
        let mut row = |name: &str, of: &dyn Fn(&Table, &Costs) -> String| {
            text += &format!("{name:30}");
            for candidate in &self.candidates {
                let cell = candidate.of.as_ref().map_or("-".into(), |(table, costs)| of(table, costs));
                text += &format!("  {cell:<34}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        };
        row("", &|t, _| {
            let mark = if t.records.scheme == self.candidates[self.chosen].scheme {
                " (db build takes it)"
            } else {
                ""
            };
            format!("{}{mark}", t.records.scheme.title())
        });
        if self.candidates.iter().any(|c| c.of.as_ref().is_ok_and(|(t, _)| t.blocks > 1)) {
            row("a record", &|t, _| format!("{} blocks of {} B", t.blocks, t.block_bytes));
        }
        row("matrix, rows x columns", &|t, _| {
            format!(
                "{} x {}",
                count(t.records.geometry.rows() as u64),
                count(t.records.geometry.columns as u64)
            )
        });
        row("security, quantum", &|t, _| {
            let security = t.records.security();
            let quantum =
                security.and_then(|s| s.quantum_bits).map_or("not estimated".into(), |b| format!("{b} bits"));
            format!("{} bits, {quantum}", security.map_or(0.0, |s| s.bits))
        });
        row("a lookup fails", &|_, c| format!("less than once in 2^{}", c.failure_log2.min(128.0).floor()));
        row("hint, once an epoch", &|_, c| format!("{}, {}", bytes(c.hint_bytes), seconds(c.hint_seconds)));
        row("query", &|_, c| format!("{}, {}", bytes(c.query_bytes), seconds(c.query_seconds)));
        row("answer", &|_, c| format!("{}, {}", bytes(c.answer_bytes), seconds(c.answer_seconds)));
        row("client before, after", &|_, c| {
            format!("{}, {}", seconds(c.prepare_seconds), seconds(c.decode_seconds))
        });
        row("server, a lookup alone", &|_, c| seconds(c.server_seconds));
        row(&format!("server, one of {} in a pass", q.gather), &|_, c| seconds(c.server_seconds_gathered));
        row("a lookup with its hint's share", &|_, c| seconds(c.wait_seconds));
        row("server's memory", &|_, c| bytes(c.memory_bytes));
        row("server's disk", &|_, c| bytes(c.disk_bytes));
        row("build", &|_, c| seconds(c.build_seconds.total()));
        row("  read, lay out, hint", &|_, c| {
            let b = &c.build_seconds;
            format!("{}, {}, {}", seconds(b.read), seconds(b.fill), seconds(b.hint))
        });
        row("a million lookups cost", &|_, c| figure(c.million.total));
        row("  cores, memory", &|_, c| format!("{}, {}", figure(c.million.passes), figure(c.million.memory)));
        row("  traffic, builds", &|_, c| {
            format!("{}, {}", figure(c.million.traffic), figure(c.million.builds))
        });
        if self.candidates.iter().any(|c| c.of.as_ref().is_ok_and(|(_, costs)| costs.batch.is_some())) {
            let mut of = |name: &str, cell: &dyn Fn(&BatchCosts) -> String| {
                row(name, &|_, c| c.batch.as_ref().map_or("-".into(), cell));
            };
            let keys = q.batch.unwrap_or(0);
            of(&format!("a batch of {keys} keys, buckets"), &|b| {
                format!("{}, fails once in 2^{}", b.buckets, b.failure_log2.floor())
            });
            of("  queries, answers", &|b| format!("{}, {}", bytes(b.query_bytes), bytes(b.answer_bytes)));
            of("  client, server", &|b| {
                format!("{}, {}", seconds(b.client_seconds), seconds(b.server_seconds))
            });
            of("  server, a key", &|b| seconds(b.server_seconds / b.keys as f64));
            of("  memory and disk beside", &|b| {
                format!("{}, {}", bytes(b.memory_bytes), bytes(b.disk_bytes))
            });
            of("  a million lookups cost so", &|b| figure(b.million));
        }
        let whole = Whole::new(q);
        text += &format!(
            "\nsending the whole table instead: {} once an epoch, {}; a million lookups cost {} in traffic\n\n{}\n",
            bytes(whole.bytes),
            seconds(whole.seconds),
            figure(whole.million),
            self.reason()
        );
        for note in self.advice().into_iter().chain(self.notes()) {
            text += &format!("{note}\n");
        }
        let p = &q.prices;
        text += &format!(
            "prices: {} a core-hour, {} a GB of memory for a month, {} a GB of traffic (--price-core-hour and so on)\n",
            p.core_hour, p.gb_month, p.gb
        );
        text
    }
}
