//! Progress on a terminal: one line on standard error, gone before anything else is printed.

use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use blindcore_units::{Progress, Unit, count, figure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, WeakProgressBar};

/// What takes no longer shows nothing.
const MOMENT: Duration = Duration::from_millis(300);

/// The bar that is on the terminal, if any.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Does something while no bar is on the terminal.
pub(crate) fn suspended<T>(work: impl FnOnce() -> T) -> T {
    let shown =
        SHOWN.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    match shown {
        Some(bar) => bar.suspend(work),
        None => work(),
    }
}

/// Where a bar is drawn.
type Target = Box<dyn Fn() -> ProgressDrawTarget + Send>;

/// A progress bar with rate and time left, shown once something takes longer than a moment.
pub struct Bar {
    bar: ProgressBar,
    target: Target,
    label: String,
    sized: bool,
    begun: Instant,
    drawn: bool,
    stop: Option<Arc<AtomicBool>>,
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Bar {
    /// A bar that shows itself when it must; on no terminal, or where it is to be quiet, it prints nothing.
    #[must_use]
    pub fn new() -> Self {
        let visible = std::io::stderr().is_terminal() && !crate::is_quiet();
        Self::on(Box::new(
            move || {
                if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
            },
        ))
    }

    fn on(target: Target) -> Self {
        let bar = ProgressBar::hidden();
        let (label, begun) = (String::new(), Instant::now());
        Self { bar, target, label, sized: false, begun, drawn: false, stop: None }
    }

    /// The same, for work that stops when this is raised.
    #[must_use]
    pub fn until(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Some(stop.clone());
        self
    }

    /// Takes the place of the stage before, whose line goes.
    fn begin(&mut self, label: &str, total: Option<u64>, unit: Unit) {
        self.bar.finish_and_clear();
        (self.label, self.sized, self.drawn) = (label.into(), total.is_some(), false);
        let (done, rate) = if unit == Unit::Bytes {
            ("{bytes}/{total_bytes}", "{bytes_per_sec}")
        } else {
            ("{human_pos}/{human_len}", "{rate}")
        };
        let template = match (total, unit) {
            (Some(_), _) => format!("{{msg:12}} [{{wide_bar}}] {done}  {rate}  {{eta}} left"),
            (None, Unit::Bytes) => "{msg:12} {spinner} {bytes}  {bytes_per_sec}  {elapsed}".into(),
            (None, _) => "{msg:12} {spinner} {human_pos}  {rate}  {elapsed}".into(),
        };
        let style = ProgressStyle::with_template(&template).expect("a template written here").with_key(
            "rate",
            |state: &ProgressState, line: &mut dyn fmt::Write| {
                let _ = line.write_str(&a_second(state.per_sec()));
            },
        );
        self.bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        self.bar.set_style(style.progress_chars("=> "));
        self.bar.set_message(self.label.clone());
    }
}

/// So many things a second, in no more digits than a person reads.
fn a_second(rate: f64) -> String {
    match rate {
        many if many >= 100.0 => format!("{}/s", count(many.round() as u64)),
        few => format!("{}/s", figure(few)),
    }
}

impl Progress for Bar {
    fn at(&mut self, label: &str, done: u64, total: Option<u64>, unit: Unit) {
        if self.label != label || self.sized != total.is_some() {
            self.begin(label, total, unit);
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
        // The first line that is seen has a number in it.
        if !self.drawn && done > 0 && self.begun.elapsed() > MOMENT {
            self.drawn = true;
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.bar.downgrade());
            self.bar.set_draw_target((self.target)());
            self.bar.tick();
        }
    }

    fn note(&mut self, line: &str) {
        crate::note(line);
    }

    fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::TermLike;

    use super::*;

    /// What was written to a terminal; lines that were cleared stand as `<cleared>`.
    #[derive(Clone, Debug, Default)]
    struct Terminal(Arc<Mutex<Vec<String>>>);

    impl Terminal {
        fn add(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.to_owned());
            Ok(())
        }
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.add(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.add(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            self.add("<cleared>")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_line_has_a_number_and_the_last_is_cleared() {
        let terminal = Terminal::default();
        let to = terminal.clone();
        let mut bar = Bar::on(Box::new(move || ProgressDrawTarget::term_like(Box::new(to.clone()))));
        // However long it takes to get from here to the next line.
        bar.begun = Instant::now() + 1000 * MOMENT;
        bar.at("reading", 0, Some(3 << 20), Unit::Bytes);
        bar.at("reading", 1 << 20, Some(3 << 20), Unit::Bytes);
        assert!(terminal.0.lock().unwrap().is_empty(), "a moment is not over");
        bar.begun = Instant::now() - 2 * MOMENT;
        bar.at("laying out", 0, Some(1000), Unit::Items);
        assert!(terminal.0.lock().unwrap().is_empty(), "there is no number yet");
        bar.at("laying out", 250, Some(1000), Unit::Items);
        let written = |from: usize| terminal.0.lock().unwrap()[from..].concat();
        let first = written(0);
        assert!(
            first.contains("laying out") && first.contains("250/1,000") && first.contains("left"),
            "{first}"
        );
        // Something else is printed with the line away.
        let before = terminal.0.lock().unwrap().len();
        suspended(|| terminal.add("<result>").unwrap());
        let around = written(before);
        let (cleared, printed) = (around.find("<cleared>").unwrap(), around.find("<result>").unwrap());
        assert!(cleared < printed, "{around}");
        let before = terminal.0.lock().unwrap().len();
        drop(bar);
        let last = written(before);
        assert!(last.contains("<cleared>") && !last.contains("laying out"), "{last}");
    }

    #[test]
    fn rates_have_few_digits() {
        assert_eq!(
            [10_461_208.281_2, 1000.4, 999.6, 12.345, 0.0123].map(a_second),
            ["10,461,208/s", "1,000/s", "1,000/s", "12.3/s", "0.0123/s"]
        );
    }
}
