//! What servers of such schemes do alike: queries and their keys go to passes, and trees grow on all threads.

use blindcore_accel::Cost;
use blindcore_rlwe::{Ciphertext, Expansion, GaloisKeys};

use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::scheme::Run;
use crate::{Error, MAX_GATHER};

/// Memory for the queries of a pass, expanded.
const PASS_BYTES: usize = 128 << 20;

/// How many queries share a pass, if each has `words` words when it is expanded.
pub(in crate::schemes) fn pass_queries(words: usize) -> usize {
    (PASS_BYTES / (8 * words)).clamp(1, MAX_GATHER)
}

/// The passes over an operand that answer `queries` queries, at most `most` in each.
pub(in crate::schemes) fn runs(operand: usize, most: usize, queries: usize) -> Vec<Run> {
    let run = |queries, passes| Run { operand, queries, passes };
    let (full, rest) = (run(most, (queries / most) as u64), run(queries % most, 1));
    [full, rest].into_iter().filter(|run| run.queries > 0 && run.passes > 0).collect()
}

/// Answers queries, `most` in a pass.
///
/// # Errors
/// A pass's.
pub(in crate::schemes) fn in_passes<K: 'static>(
    queries: &[&[u8]],
    keys: &[&RegisteredKeys],
    most: usize,
    mut pass: impl FnMut(&[(&[u8], &K)], &mut Cost) -> Result<Vec<Vec<u8>>, Error>,
) -> Result<(Vec<Vec<u8>>, Cost), Error> {
    let keys = keys.iter().filter_map(|keys| keys.get::<K>());
    let work: Vec<(&[u8], &K)> = queries.iter().copied().zip(keys).collect();
    let mut cost = Cost::default();
    let answers = work.chunks(most).map(|work| pass(work, &mut cost)).collect::<Result<Vec<_>, _>>()?;
    Ok((answers.concat(), cost))
}

/// The leaves of trees of one height, each with its root and how many leaves it has, one tree's after another's.
///
/// Branches are shared out to threads, some to each. Keys and sizes have been checked.
pub(in crate::schemes) fn grown(
    keys: &GaloisKeys,
    height: u32,
    roots: &[(Ciphertext, usize)],
    threads: usize,
) -> Vec<Ciphertext> {
    let expansions: Vec<Expansion<'_>> = roots
        .iter()
        .map(|(_, count)| keys.expansion(height, *count).expect("keys and sizes were checked"))
        .collect();
    let depth = if threads > 1 { (4 * threads).next_power_of_two().ilog2() } else { 0 };
    let branches = roots.iter().zip(&expansions).enumerate().flat_map(|(tree, ((root, _), expansion))| {
        expansion.branches(root, depth).into_iter().map(move |branch| (tree, branch))
    });
    let branches: Vec<_> = branches.collect();
    let grown = each(threads, &branches, |(tree, branch)| expansions[*tree].leaves(branch));
    let mut leaves = Vec::with_capacity(roots.iter().map(|(_, count)| count).sum());
    for ((tree, _), grown) in branches.iter().zip(grown) {
        leaves.extend(grown.into_iter().map(|(leaf, made)| ((*tree, leaf), made)));
    }
    leaves.sort_by_key(|(place, _)| *place);
    leaves.into_iter().map(|(_, leaf)| leaf).collect()
}
