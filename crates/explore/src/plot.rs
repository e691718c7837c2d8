//! Scatter plots and curves, as SVG and PNG.
//!
//! Series differ by colour and by mark: colours are Okabe and Ito's (2008), which people with any colour vision tell apart, and marks
//! stay apart in grey.

use std::collections::HashSet;
use std::sync::Once;

use anyhow::{Context, bail};
use plotters::coord::ranged1d::{
    KeyPointHint, NoDefaultFormatting, Ranged, ReversibleRanged, ValueFormatter,
};
use plotters::prelude::*;
use plotters::style::FontStyle;

/// A series of points.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What the legend calls it; empty: it is not in it.
    pub name: String,
    /// x and y, in order.
    pub points: Vec<(f64, f64)>,
    /// Whether a line joins them.
    pub line: bool,
}

/// An axis of a plot.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// Whether equal steps are equal factors.
    pub log: bool,
    /// Whether it begins at 0.
    pub zero: bool,
}

/// A plot.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// The name of its files, without an ending.
    pub name: String,
    /// What stands over it.
    pub title: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// What it shows.
    pub series: Vec<Series>,
}

const FONT: &str = "plot";
/// DejaVu Sans, cut down to Latin letters; its licence lies beside it.
const FONT_FILE: &[u8] = include_bytes!("../font/DejaVuSans-latin.ttf");
const SIZE: (u32, u32) = (720, 460);
/// Okabe and Ito's colours on white, the yellow left out.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(225, 225, 225);

impl Plot {
    /// The plot as SVG.
    ///
    /// # Errors
    /// It shows no point.
    pub fn svg(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        self.draw(&SVGBackend::with_string(&mut text, SIZE).into_drawing_area())?;
        // Whatever shows it has a font without serifs, and needs none of ours.
        Ok(text
            .replace(&format!("font-family=\"{FONT}\""), "font-family=\"DejaVu Sans, Verdana, sans-serif\""))
    }

    /// The plot as PNG.
    ///
    /// # Errors
    /// It shows no point.
    pub fn png(&self) -> anyhow::Result<Vec<u8>> {
        let (wide, high) = SIZE;
        let mut pixels = vec![0u8; (wide * high * 3) as usize];
        self.draw(&BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area())?;
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, wide, high);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(out)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, plotters::coord::Shift>) -> anyhow::Result<()>
    where
        B::ErrorType: 'static,
    {
        static REGISTERED: Once = Once::new();
        // Fails only for a font that is none, and a test draws with it.
        REGISTERED.call_once(|| {
            let _ = plotters::style::register_font(FONT, FontStyle::Normal, FONT_FILE);
        });
        let all = || self.series.iter().flat_map(|s| &s.points);
        if all().next().is_none() {
            bail!("the plot {} shows no point", self.name);
        }
        let x = Scale::new(&self.x, all().map(|p| p.0));
        let y = Scale::new(&self.y, all().map(|p| p.1));
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .margin_right(24)
            .caption(&self.title, (FONT, 21, &INK))
            .x_label_area_size(46)
            .y_label_area_size(100)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .light_line_style(GRID)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .axis_desc_style((FONT, 17, &INK))
            .label_style((FONT, 16, &INK))
            .x_labels(9)
            .y_labels(8)
            .draw()?;
        let many = all().count() > 400;
        let size = if many { 2 } else { 4 };
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            if series.line {
                chart.draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)))?;
            }
            // What would be drawn over itself is drawn once.
            let mut seen = HashSet::new();
            let pixel = |p: &&(f64, f64)| (x.map(&p.0, (0, SIZE.0 as i32)), y.map(&p.1, (0, SIZE.1 as i32)));
            let apart = series.points.iter().filter(|p| seen.insert(pixel(p)));
            let apart = apart.copied();
            // Circles, squares, triangles, crosses, in turn.
            let drawn = match at % 4 {
                0 => {
                    let drawn = chart.draw_series(apart.map(|p| Circle::new(p, size, colour.filled())))?;
                    drawn.legend(move |p| Circle::new(p, 4, colour.filled()))
                }
                1 => {
                    let square = move |s: i32| Rectangle::new([(-s, -s), (s, s)], colour.filled());
                    let drawn = chart.draw_series(apart.map(|p| EmptyElement::at(p) + square(size)))?;
                    drawn.legend(move |p| EmptyElement::at(p) + square(4))
                }
                2 => {
                    let drawn = chart
                        .draw_series(apart.map(|p| TriangleMarker::new(p, size + 1, colour.filled())))?;
                    drawn.legend(move |p| TriangleMarker::new(p, 5, colour.filled()))
                }
                _ => {
                    let drawn =
                        chart.draw_series(apart.map(|p| Cross::new(p, size, colour.stroke_width(2))))?;
                    drawn.legend(move |p| Cross::new(p, 4, colour.stroke_width(2)))
                }
            };
            if !series.name.is_empty() {
                drawn.label(&series.name);
            }
        }
        if self.series.iter().any(|s| !s.name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.corner())
                .background_style(WHITE.mix(0.9))
                .border_style(GRID)
                .label_font((FONT, 16, &INK))
                .margin(8)
                .legend_area_size(16)
                .draw()?;
        }
        area.present().map_err(|e| anyhow::anyhow!("{e}")).context("the plot can't be drawn")
    }

    /// Where the legend covers the fewest points.
    fn corner(&self) -> SeriesLabelPosition {
        let all = || self.series.iter().flat_map(|s| &s.points);
        let x = Scale::new(&self.x, all().map(|p| p.0));
        let y = Scale::new(&self.y, all().map(|p| p.1));
        // Its size, in shares of the plot's.
        let letters = self.series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
        let wide = (letters as f64 * 7.5 + 50.0) / 590.0;
        let high = (self.series.len() as f64 * 20.0 + 24.0) / 360.0;
        let places = [
            (SeriesLabelPosition::UpperRight, 1.0 - wide, 1.0 - high),
            (SeriesLabelPosition::LowerRight, 1.0 - wide, 0.0),
            (SeriesLabelPosition::UpperLeft, 0.0, 1.0 - high),
            (SeriesLabelPosition::LowerLeft, 0.0, 0.0),
            (SeriesLabelPosition::MiddleRight, 1.0 - wide, 0.5 - high / 2.0),
            (SeriesLabelPosition::MiddleLeft, 0.0, 0.5 - high / 2.0),
        ];
        let covered = |left: f64, low: f64| {
            let within = |p: &&(f64, f64)| {
                let (x, y) = (x.share(p.0), y.share(p.1));
                (left - 0.02..=left + wide + 0.02).contains(&x)
                    && (low - 0.04..=low + high + 0.04).contains(&y)
            };
            all().filter(within).count()
        };
        let best = places.into_iter().min_by_key(|(_, left, low)| covered(*left, *low));
        best.map_or(SeriesLabelPosition::UpperRight, |(place, ..)| place)
    }
}

/// An axis of either scale, with its ticks.
#[derive(Clone)]
struct Scale {
    log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let scale = |v: f64| if axis.log { v.max(f64::MIN_POSITIVE).log2() } else { v };
        let (low, high) =
            values.map(scale).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let low = if axis.zero && !axis.log { low.min(0.0) } else { low };
        let room = match high - low {
            0.0 => high.abs().max(1.0) * 0.05,
            width => width * 0.05,
        };
        let below = if axis.zero && !axis.log && low == 0.0 { 0.0 } else { room };
        Self { log: axis.log, low: low - below, high: high + room }
    }

    /// How far along the axis a value is, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log2() } else { value };
        (value - self.low) / (self.high - self.low)
    }

    /// Ticks: 1, 2 or 5 times a power of ten apart; powers of two on a scale of factors.
    fn ticks(&self, most: usize) -> Vec<f64> {
        let width = self.high - self.low;
        let step = if self.log {
            (width / most as f64).ceil().max(1.0)
        } else {
            let rough = width / most as f64;
            let power = 10f64.powf(rough.log10().floor());
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough)
        };
        let first = (self.low / step).ceil();
        let ticks = (0..64).map(|i| (first + f64::from(i)) * step).take_while(|t| *t <= self.high);
        ticks.map(|t| if self.log { t.exp2() } else { t }).collect()
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.share(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        self.ticks(hint.max_num_points().clamp(2, 10))
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ReversibleRanged for Scale {
    fn unmap(&self, at: i32, limit: (i32, i32)) -> Option<f64> {
        let share = f64::from(at - limit.0) / f64::from(limit.1 - limit.0);
        let value = self.low + share * (self.high - self.low);
        Some(if self.log { value.exp2() } else { value })
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        // Powers of two are shown whole.
        if self.log && *value < 1e6 { value.to_string() } else { number(*value, self.high - self.low) }
    }
}

/// A number at a tick, on an axis so wide.
fn number(value: f64, width: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e6.. => {
            let power = value.abs().log10().floor();
            let text = format!("{:.3}", value / 10f64.powf(power));
            format!("{}e{power}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => {
            let places = if width > 0.0 && width < 50.0 {
                (1.0 - width.log10().floor()).clamp(0.0, 6.0) as usize
            } else {
                0
            };
            let places = if value.fract() == 0.0 { 0 } else { places.max(1) };
            let text = format!("{value:.places$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let line = |k: f64| (0..8).map(|i| (f64::from(1 << i), k * f64::from(i))).collect();
        let series = |name: &str, k| Series { name: name.into(), points: line(k), line: true };
        Plot {
            name: "p".into(),
            title: "A title".into(),
            x: Axis { label: "size (GiB)".into(), log: true, zero: false },
            y: Axis { label: "speed".into(), log: false, zero: true },
            series: vec![series("one", 1.0), series("two", 2.0), series("three", 3.0), series("four", 4.0)],
        }
    }

    #[test]
    fn both_forms_show_titles_marks_and_ticks() {
        let svg = plot().svg().unwrap();
        for part in ["A title", "size (GiB)", "\n128\n", "\none\n", "#0072B2", "font-family=\"DejaVu Sans"] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        let png = plot().png().unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() < 60_000, "{} bytes", png.len());
        assert_eq!(plot().png().unwrap(), png);
        let nothing = Plot { series: Vec::new(), ..plot() };
        assert!(nothing.svg().unwrap_err().to_string().contains("shows no point"));
        let point = Series { points: vec![(3.0, 3.0)], ..Series::default() };
        assert!(Plot { series: vec![point], ..plot() }.svg().is_ok(), "a single point has room about it");
    }

    #[test]
    fn ticks_are_round() {
        let scale = |log, low, high| Scale { log, low, high };
        assert_eq!(scale(false, 0.0, 10.0).ticks(6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(scale(true, -1.2, 6.1).ticks(9), [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(
            [(12.5e9, 5e9), (0.5, 3.0), (169.2, 0.9), (64.0, 8.0), (0.0, 1.0)].map(|(v, w)| number(v, w)),
            ["1.25e10", "0.5", "169.2", "64", "0"]
        );
    }
}
