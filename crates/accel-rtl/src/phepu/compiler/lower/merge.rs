//! The instructions of a chip's elements as one list: equal ones get one mask.

use super::super::error::Error;
use super::super::isa::Word;
use super::super::limits::MAX_STREAM;
use super::stages::{Image, Stage};

/// A chip's instruction before things have addresses.
pub(super) enum Item {
    Weights { mask: u16, image: Image },
    Input { mask: u16, slot: u8, residue: u32, stage: u32 },
    Plain(Word),
}

/// Those that are the same as one, with the masks of all.
fn alike<'a, T: PartialEq>(all: impl Iterator<Item = (u16, &'a T)>) -> Vec<(u16, &'a T)> {
    let mut found: Vec<(u16, &T)> = Vec::new();
    for (mask, one) in all {
        match found.iter_mut().find(|(_, other)| *other == one) {
            Some((masks, _)) => *masks |= mask,
            None => found.push((mask, one)),
        }
    }
    found
}

/// Takes several lists in turn, each in order, what stands in front of several at once; the longest goes first, so
/// that the others wait for what they have in common with its end.
fn merge<T: Copy + PartialEq>(lists: &[(u16, &[T])], mut emit: impl FnMut(u16, T)) {
    let mut lists: Vec<(u16, &[T])> = lists.to_vec();
    loop {
        let longest = lists.iter().rev().max_by_key(|(_, list)| list.len());
        let Some(&next) = longest.and_then(|(_, list)| list.first()) else { return };
        let mut all = 0;
        for (mask, list) in &mut lists {
            if let Some((_, rest)) = list.split_first().filter(|(first, _)| **first == next) {
                all |= *mask;
                *list = rest;
            }
        }
        emit(all, next);
    }
}

/// The elements' stages as one list, equal instructions of one stage together.
pub(super) fn merge_elements(chip: usize, elements: &[(u16, Vec<Stage>)]) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let stages = elements.iter().map(|(_, stages)| stages.len()).max().unwrap_or(0);
    for stage in 0..stages {
        let there = || elements.iter().filter_map(|(mask, stages)| Some((*mask, stages.get(stage)?)));
        for (mask, image) in alike(there().map(|(mask, of)| (mask, &of.weights))) {
            items.extend(image.iter().map(|image| Item::Weights { mask, image: image.clone() }));
        }
        for (mask, inputs) in alike(there().map(|(mask, of)| (mask, &of.inputs))) {
            let stage = stage as u32;
            items.extend(inputs.iter().map(|&(slot, residue)| Item::Input { mask, slot, residue, stage }));
        }
        let steps: Vec<_> = there().map(|(mask, of)| (mask, of.steps.as_slice())).collect();
        merge(&steps, |mask, operation| items.push(Item::Plain(Word { mask, operation })));
        for (mask, of) in there() {
            items.extend(of.late.iter().map(|operation| Item::Plain(Word { mask, operation: *operation })));
        }
        if items.len() > MAX_STREAM {
            return Err(Error::LongStream { chip });
        }
    }
    Ok(items)
}
