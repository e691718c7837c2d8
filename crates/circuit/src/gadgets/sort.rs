//! Sorting: networks of compare-exchanges.

use crate::builder::{Bit, Builder};
use std::ops::Range;

/// The compare-exchanges of the best network known for 9 and 10 values (Floyd; Waksman), for 11 and 12 (Shapiro and
/// Green), and for 13 to 16 (Green; 13 in 46, where 45 are known), all by way of Knuth, volume 3, section 5.3.4, and
/// Dobbelaere's list of networks. Each line is a layer. A smaller network is a larger one without its last values.
#[rustfmt::skip]
const TEN: &[(u8, u8)] = &[
    (0, 8), (1, 9), (2, 7), (3, 5), (4, 6),
    (0, 2), (1, 4), (5, 8), (7, 9),
    (0, 3), (2, 4), (5, 7), (6, 9),
    (0, 1), (3, 6), (8, 9),
    (1, 5), (2, 3), (4, 8), (6, 7),
    (1, 2), (3, 5), (4, 6), (7, 8),
    (2, 3), (4, 5), (6, 7),
    (3, 4), (5, 6),
];
#[rustfmt::skip]
const TWELVE: &[(u8, u8)] = &[
    (0, 8), (1, 7), (2, 6), (3, 11), (4, 10), (5, 9),
    (0, 1), (2, 5), (3, 4), (6, 9), (7, 8), (10, 11),
    (0, 2), (1, 6), (5, 10), (9, 11),
    (0, 3), (1, 2), (4, 6), (5, 7), (8, 11), (9, 10),
    (1, 4), (3, 5), (6, 8), (7, 10),
    (1, 3), (2, 5), (6, 9), (8, 10),
    (2, 3), (4, 5), (6, 7), (8, 9),
    (4, 6), (5, 7),
    (3, 4), (5, 6), (7, 8),
];
/// What Green's network for 16 does after its first four layers, which compare places that differ in one bit.
#[rustfmt::skip]
const SIXTEEN: &[(u8, u8)] = &[
    (5, 10), (6, 9), (3, 12), (13, 14), (4, 8), (7, 11), (1, 2),
    (1, 4), (7, 13), (2, 8), (11, 14),
    (2, 4), (5, 6), (9, 10), (11, 13), (3, 8), (7, 12),
    (6, 8), (10, 12), (3, 5), (7, 9),
    (3, 4), (5, 6), (7, 8), (9, 10), (11, 12),
    (6, 7), (8, 9),
];

/// The compare-exchanges that sort `n` values in place, each as two places, the lower first: there the lesser
/// value goes.
///
/// The fewest known up to 16 values (but for 13); beyond, halves sorted and merged (Batcher 1968).
#[must_use]
pub fn network(n: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    sort_places(&(0..n).collect::<Vec<_>>(), &mut pairs);
    untangled(n, pairs)
}

/// Appends what sorts these places, and says in which order they hold the sorted values.
fn sort_places(places: &[usize], pairs: &mut Vec<(usize, usize)>) -> Vec<usize> {
    let n = places.len();
    let known: Vec<(u8, u8)> = match n {
        9 | 10 => TEN.to_vec(),
        11 | 12 => TWELVE.to_vec(),
        13..=16 => {
            let by_bit = [1, 2, 4, 8]
                .into_iter()
                .flat_map(|bit| (0..16u8).filter(move |low| low & bit == 0).map(move |low| (low, low | bit)));
            by_bit.chain(SIXTEEN.iter().copied()).collect()
        }
        0 | 1 => return places.to_vec(),
        _ => {
            let (low, high) = places.split_at(n.div_ceil(2));
            let (low, high) = (sort_places(low, pairs), sort_places(high, pairs));
            return merge_places(&low, &high, pairs);
        }
    };
    let pair = |&(a, b): &(u8, u8)| Some((*places.get(usize::from(a))?, *places.get(usize::from(b))?));
    pairs.extend(known.iter().filter_map(pair));
    places.to_vec()
}

/// Appends Batcher's odd-even merge of two sorted runs, and says in which order the places hold the merged values.
fn merge_places(low: &[usize], high: &[usize], pairs: &mut Vec<(usize, usize)>) -> Vec<usize> {
    match (low, high) {
        ([], run) | (run, []) => run.to_vec(),
        ([a], [b]) => {
            pairs.push((*a, *b));
            vec![*a, *b]
        }
        _ => {
            let every_other =
                |run: &[usize], from| run.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
            let [even, odd] =
                [0, 1].map(|from| merge_places(&every_other(low, from), &every_other(high, from), pairs));
            // The least is even's first; each further one of even and the one of odd before it may be out of order.
            let mut merged = vec![even[0]];
            for i in 0..odd.len().max(even.len() - 1) {
                match (odd.get(i), even.get(i + 1)) {
                    (Some(&a), Some(&b)) => {
                        pairs.push((a, b));
                        merged.extend([a, b]);
                    }
                    (a, b) => merged.extend(a.or(b)),
                }
            }
            merged
        }
    }
}

/// The same network with every lesser value going to the lower place, after which sorted values lie in order (Knuth,
/// volume 3, exercise 16 of section 5.3.4).
fn untangled(n: usize, pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut now: Vec<usize> = (0..n).collect();
    let untangle = |(a, b): (usize, usize)| {
        if now[a] > now[b] {
            now.swap(a, b);
        }
        (now[a], now[b])
    };
    pairs.into_iter().map(untangle).collect()
}

impl Builder {
    /// The words in ascending order, unsigned. 2 n ANDs for each compare-exchange of [`network`].
    pub fn sort(&mut self, words: &[Vec<Bit>]) -> Vec<Vec<Bit>> {
        let width = words.first().map_or(0, Vec::len);
        self.sort_by(words, 0..width)
    }

    /// The words in ascending order of these bits of them, unsigned. Words with equal bits come in any order.
    pub fn sort_by(&mut self, words: &[Vec<Bit>], key: Range<usize>) -> Vec<Vec<Bit>> {
        self.exchange(words, key, &network(words.len()))
    }

    /// Two runs in ascending order merged into one, unsigned. 2 n ANDs for each of about k log2(k) / 2 compare-exchanges
    /// of k words.
    pub fn merge(&mut self, low: &[Vec<Bit>], high: &[Vec<Bit>]) -> Vec<Vec<Bit>> {
        let words = [low, high].concat();
        let places: Vec<usize> = (0..words.len()).collect();
        let mut pairs = Vec::new();
        merge_places(&places[..low.len()], &places[low.len()..], &mut pairs);
        let width = words.first().map_or(0, Vec::len);
        self.exchange(&words, 0..width, &untangled(words.len(), pairs))
    }

    fn exchange(&mut self, words: &[Vec<Bit>], key: Range<usize>, pairs: &[(usize, usize)]) -> Vec<Vec<Bit>> {
        let mut words = words.to_vec();
        for &(i, j) in pairs {
            let swap = self.less(&words[j][key.clone()], &words[i][key.clone()]);
            let (first, second) = self.swap(swap, &words[i], &words[j]);
            (words[i], words[j]) = (first, second);
        }
        words
    }

    /// How many values two strictly ascending lists of equally wide, unsigned values have in common (private set
    /// intersection by sort and compare: Huang, Evans and Katz 2012). Lists that are not strictly ascending give a
    /// number without meaning.
    pub fn intersection_size(&mut self, a: &[Vec<Bit>], b: &[Vec<Bit>]) -> Vec<Bit> {
        let merged = self.merge(a, b);
        let equal: Vec<Bit> = merged.windows(2).map(|pair| self.equal(&pair[0], &pair[1])).collect();
        let mut count = self.popcount(&equal);
        count.truncate(crate::gadgets::words::bits_for(a.len().min(b.len())));
        count
    }
}
