//! What servers of such schemes do alike: queries and their keys go to passes, and trees grow on all threads.

use blindcore_accel::Cost;
use blindcore_rlwe::{Ciphertext, Expansion, GaloisKeys};

use crate::Error;
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;

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
