//! The definition of every scheme, a layer at a time: what every device is compared with.

use sha1::{Digest, Sha1};

use zeroize::Zeroizing;

use super::hash::{hash, when};
use super::{GarblingScheme, Label, Labels, Offset, Program, Step, three_halves};

/// The garbler's part or the evaluator's, with the tables that it writes or reads.
pub enum Side<'a> {
    /// Garbles into tables.
    Garble(&'a Offset, &'a mut [u8]),
    /// Evaluates from tables.
    Evaluate(&'a [u8]),
}

/// Garbles or evaluates a program by the book. The lengths are as [`check`](super::check) wants them.
pub fn run(
    scheme: &GarblingScheme,
    program: &Program,
    first_gate: u64,
    labels: &mut Labels,
    mut side: Side<'_>,
) {
    let row = scheme.table_bytes();
    let (instances, stride) = (labels.instances(), labels.stride());
    for (group, labels) in labels.groups_mut().enumerate() {
        for lane in (0..stride).take_while(|lane| group * stride + lane < instances) {
            let first = (group * stride + lane) * program.ands();
            let at = |slot: u32| slot as usize * stride + lane;
            for (xors, ands, before) in program.parts().iter().flat_map(|part| program.layers_of(*part)) {
                for step in xors {
                    labels[at(step.out)] = labels[at(step.a)] ^ labels[at(step.b)];
                }
                let tables = (first + before) * row..(first + before + ands.len()) * row;
                let layer = LayerOf { first: first_gate + (first + before) as u64, steps: ands };
                let pairs = ands.iter().map(|s| (labels[at(s.a)], labels[at(s.b)])).collect();
                let pairs: Zeroizing<Vec<(Label, Label)>> = Zeroizing::new(pairs);
                let outs = match (&mut side, scheme) {
                    (Side::Garble(offset, all), GarblingScheme::HalfGates { key }) => {
                        layer.garble_halves(key, offset.label(), &pairs, &mut all[tables])
                    }
                    (Side::Evaluate(all), GarblingScheme::HalfGates { key }) => {
                        layer.evaluate_halves(key, &pairs, &all[tables])
                    }
                    (Side::Garble(offset, all), GarblingScheme::ThreeHalves { key }) => {
                        three_halves::garble(key, offset.label(), layer.first, &pairs, &mut all[tables])
                    }
                    (Side::Evaluate(all), GarblingScheme::ThreeHalves { key }) => {
                        three_halves::evaluate(key, layer.first, &pairs, &all[tables])
                    }
                    (Side::Garble(offset, all), GarblingScheme::InsecureSifo) => {
                        layer.garble_sifo(offset.label(), &pairs, &mut all[tables])
                    }
                    (Side::Evaluate(all), GarblingScheme::InsecureSifo) => {
                        layer.evaluate_sifo(&pairs, &all[tables])
                    }
                };
                for (step, out) in ands.iter().zip(&*Zeroizing::new(outs)) {
                    labels[at(step.out)] = *out;
                }
            }
        }
    }
}

/// The ANDs of a layer in one instance.
struct LayerOf<'a> {
    /// The number of the first gate.
    first: u64,
    steps: &'a [Step],
}

impl LayerOf<'_> {
    fn gates(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.steps.len() as u64
    }

    /// Zahur, Rosulek and Evans 2015, figure 2: labels of 0 in, labels of 0 out.
    fn garble_halves(
        &self,
        key: &[u8; 16],
        offset: Label,
        pairs: &[(Label, Label)],
        tables: &mut [u8],
    ) -> Vec<Label> {
        let hashes = hash(
            key,
            self.gates().zip(pairs).flat_map(|(gate, (a, b))| {
                let (t_a, t_b) = tweaks(gate);
                [(*a, t_a), (a ^ offset, t_a), (*b, t_b), (b ^ offset, t_b)]
            }),
        );
        let (rows, _) = tables.as_chunks_mut::<32>();
        let outs = hashes.chunks_exact(4).zip(pairs).zip(rows).map(|((h, (a, b)), row)| {
            // The garbler's half knows b's permutation bit, the evaluator's half its colour.
            let garblers = h[0] ^ h[1] ^ when(b, offset);
            let evaluators = h[2] ^ h[3] ^ a;
            row[..16].copy_from_slice(&garblers.to_le_bytes());
            row[16..].copy_from_slice(&evaluators.to_le_bytes());
            h[0] ^ when(a, garblers) ^ h[2] ^ when(b, evaluators ^ a)
        });
        outs.collect()
    }

    /// The other side: active labels in, active labels out.
    fn evaluate_halves(&self, key: &[u8; 16], pairs: &[(Label, Label)], tables: &[u8]) -> Vec<Label> {
        let hashes = hash(
            key,
            self.gates().zip(pairs).flat_map(|(gate, (a, b))| {
                let (t_a, t_b) = tweaks(gate);
                [(*a, t_a), (*b, t_b)]
            }),
        );
        let (rows, _) = tables.as_chunks::<16>();
        let rows = rows.iter().map(|row| Label::from_le_bytes(*row)).collect::<Vec<_>>();
        let outs = hashes.chunks_exact(2).zip(pairs).zip(rows.chunks_exact(2));
        outs.map(|((h, (a, b)), row)| h[0] ^ when(a, row[0]) ^ h[1] ^ when(b, row[1] ^ a)).collect()
    }

    /// SIFO 2019, section 3.1.1: four hashes, the row of colours 00 is the output's label and is not sent.
    fn garble_sifo(&self, offset: Label, pairs: &[(Label, Label)], tables: &mut [u8]) -> Vec<Label> {
        let (rows, _) = tables.as_chunks_mut::<30>();
        let outs = self.gates().zip(pairs).zip(rows).map(|((gate, (a, b)), row)| {
            let of = |color_a: Label, color_b: Label| {
                let (value_a, value_b) = (color_a ^ (a & 1), color_b ^ (b & 1));
                let hash = sha1(a ^ when(&value_a, offset), b ^ when(&value_b, offset), gate);
                hash ^ when(&(value_a & value_b), offset)
            };
            let out = of(0, 0);
            for (i, (color_a, color_b)) in [(0, 1), (1, 0), (1, 1)].into_iter().enumerate() {
                let cipher = of(color_a, color_b) ^ out;
                row[i * 10..][..10].copy_from_slice(&cipher.to_le_bytes()[..10]);
            }
            out
        });
        outs.collect()
    }

    fn evaluate_sifo(&self, pairs: &[(Label, Label)], tables: &[u8]) -> Vec<Label> {
        let (rows, _) = tables.as_chunks::<30>();
        let outs = self.gates().zip(pairs).zip(rows).map(|((gate, (a, b)), row)| {
            let mut cipher = [0u8; 16];
            for i in 0..3 {
                let chosen = (((a & 1) << 1 | (b & 1)) == i as Label + 1) as u8;
                for (c, r) in cipher.iter_mut().zip(&row[i * 10..][..10]) {
                    *c |= r & chosen.wrapping_neg();
                }
            }
            sha1(*a, *b, gate) ^ Label::from_le_bytes(cipher)
        });
        outs.collect()
    }
}

/// The tweaks of a gate's two hashes.
fn tweaks(gate: u64) -> (Label, Label) {
    let first = Label::from(gate) << 1;
    (first, first | 1)
}

/// The first 80 bits of SHA-1 over both labels (ten bytes each) and the gate's number (eight, little-endian).
fn sha1(a: Label, b: Label, gate: u64) -> Label {
    let mut message = [0u8; 28];
    message[..10].copy_from_slice(&a.to_le_bytes()[..10]);
    message[10..20].copy_from_slice(&b.to_le_bytes()[..10]);
    message[20..].copy_from_slice(&gate.to_le_bytes());
    let mut first = [0u8; 16];
    first[..10].copy_from_slice(&Sha1::digest(message)[..10]);
    Label::from_le_bytes(first)
}
