//! The packets of several chips as one list: equal ones get one mask.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::stream::{Body, Packet};

/// Chips' packets as one list, in each chip's order but for data that waits for nothing (`after` is 0): it comes where
/// nothing lay before, so it may come early, and goes to all chips that it is for as soon as one needs it. Other data
/// goes to several chips if it is the same for them: the first to come to it waits for the others, unless they wait
/// for one another. So do instructions that stand in front together.
pub(super) fn merge_chips(digits: usize, lists: Vec<Vec<Packet>>) -> Vec<Packet> {
    let mut early = Early { digits: digits as u32, inputs: HashMap::new(), others: HashMap::new() };
    // How often each chip will take data that waits.
    let mut ahead: HashMap<u64, Vec<u32>> = HashMap::new();
    for (chip, packet) in
        lists.iter().enumerate().flat_map(|(chip, list)| list.iter().map(move |p| (chip, p)))
    {
        if let Some(data) = waits(packet) {
            ahead.entry(data).or_insert_with(|| vec![0; lists.len()])[chip] += 1;
        } else {
            early.expect(packet);
        }
    }
    let mut packets = Vec::new();
    let mut lists: Vec<VecDeque<Packet>> = lists.into_iter().map(VecDeque::from).collect();
    let same = |x: &Packet, y: &Packet| x.after == y.after && x.body == y.body;
    loop {
        // The one with the most before it goes first.
        let mut order: Vec<usize> = (0..lists.len()).filter(|chip| !lists[*chip].is_empty()).collect();
        order.sort_by_key(|chip| Reverse(lists[*chip].len()));
        let Some(first) = order.first().copied() else { return packets };
        let free = order.into_iter().find(|chip| {
            let front = &lists[*chip][0];
            let Some(needed) = waits(front).map(|data| &ahead[&data]) else { return true };
            let ready = |list: &VecDeque<Packet>| list.front().is_some_and(|packet| same(packet, front));
            needed.iter().zip(&lists).all(|(count, list)| *count == 0 || ready(list))
        });
        let taker = free.unwrap_or(first);
        let Some(mut next) = lists[taker].pop_front() else { return packets };
        let data = waits(&next);
        if data.is_none() && !matches!(next.body, Body::Instructions(_)) {
            early.send(next.body, &mut packets);
            continue;
        }
        // Once for each chip: a chip may have two equal packets, one after the other.
        for (_, list) in lists.iter_mut().enumerate().filter(|(chip, _)| *chip != taker) {
            let taken = list.pop_front_if(|packet| same(packet, &next));
            next.chips |= taken.map_or(0, |taken| taken.chips);
        }
        if let Some(chips) = data.and_then(|data| ahead.get_mut(&data)) {
            for (chip, count) in chips.iter_mut().enumerate() {
                *count -= next.chips >> chip & 1;
            }
        }
        packets.push(next);
    }
}

/// What stands for data that waits; none for others. Two that are taken for one merely wait for one another.
fn waits(packet: &Packet) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    (packet.after, &packet.body).hash(&mut hasher);
    (packet.after > 0).then(|| hasher.finish())
}

/// Data that waits for nothing, and the chips that it has yet to be sent to.
struct Early {
    digits: u32,
    /// Ciphertexts, by address and residue.
    inputs: HashMap<(u32, u32), u32>,
    others: HashMap<Body, u32>,
}

impl Early {
    fn expect(&mut self, packet: &Packet) {
        match &packet.body {
            Body::Instructions(_) => {}
            Body::Inputs { address, inputs } => {
                for (residue, at) in inputs.iter().zip((*address..).step_by(self.digits as usize)) {
                    *self.inputs.entry((at, *residue)).or_default() |= packet.chips;
                }
            }
            body => *self.others.entry(body.clone()).or_default() |= packet.chips,
        }
    }

    fn send(&mut self, body: Body, packets: &mut Vec<Packet>) {
        let mut send = |chips, body| packets.push(Packet { chips, after: 0, body });
        let Body::Inputs { address, inputs } = body else {
            if let Some(chips) = self.others.remove(&body) {
                send(chips, body);
            }
            return;
        };
        let mut rest = inputs.into_iter().zip((address..).step_by(self.digits as usize)).peekable();
        while let Some((residue, address)) = rest.next() {
            let Some(chips) = self.inputs.remove(&(address, residue)) else { continue };
            let mut inputs = vec![residue];
            while let Some((residue, at)) =
                rest.next_if(|(residue, at)| self.inputs.get(&(*at, *residue)) == Some(&chips))
            {
                self.inputs.remove(&(at, residue));
                inputs.push(residue);
            }
            send(chips, Body::Inputs { address, inputs });
        }
    }
}
