//! SIFO's overlay clock by clock without its arithmetic: how long a program takes, for those that would take the simulated
//! chip too long.
//!
//! Every register of `sf_dispatcher.sv`, `sf_controller.sv` and the board's models that decides *when* something happens has
//! its like here; labels and tables don't. So clocks are the chip's, which the tests make sure of.

use std::collections::VecDeque;

use super::clocks::Clocks;
use super::commands::{Batch, Commands, Operation, RawAddress, Registers};
use super::library::Timing;

/// Commands that wait between the link and the dispatcher (`sifo.sv`, `u_queue`).
const QUEUE: usize = 64;
/// Clocks through a gAND (section 3.1.1).
const AND_CLOCKS: u64 = 82;
/// How far the link's credit goes past a write's (`host_link.sv`), in 1/64 clocks.
const OVER: u32 = 63;
/// More clocks than anything waits for at once.
const LONG: u64 = 1 << 20;

#[derive(Clone, Copy)]
enum Command {
    Header { operation: Operation, gates: usize, sync: bool, whole: bool, in_turn: bool },
    Gate([RawAddress; 3]),
}

/// Clocks that a chip with this many cells takes for commands. Clocks in which nothing but time passes are counted at once.
pub(super) fn clocks(
    commands: &Commands,
    cells: [usize; 2],
    registers: Registers,
    timing: Timing,
    configuration: usize,
) -> Clocks {
    let mut chip = Chip::new(cells);
    let mut items = items(commands, registers, configuration);
    let mut item = items.next();
    // A board that has been powered has had time to earn what is over.
    let mut link = Link { credit: OVER, ..Link::default() };
    let mut counted = Clocks::default();
    loop {
        // What each part offers in this clock.
        let credit = link.credit_with(timing.period);
        let offered = item.filter(|_| !link.waiting && credit >= timing.period);
        let sent = offered.is_some_and(|(_, command)| command.is_none() || chip.queue.len() < QUEUE);
        if item.is_none() && chip.idle() && !link.waiting && !chip.table {
            return counted;
        }
        // While the host is about to see that all is done nothing else happens.
        if chip.idle() && !chip.table {
            let slept = u64::from(link.sleep(timing, chip.done));
            counted.cycles += slept;
            counted.waits_host += slept;
            chip.now += slept;
            if slept > 0 {
                continue;
            }
        }
        let signals = chip.signals(timing.latency);
        let alike = if sent {
            0
        } else {
            chip.still(&signals, timing.latency).min(link.still(timing.period, item.is_some(), chip.done))
        };
        if alike > 0 {
            counted.cycles += alike;
            counted.waits_host += alike * u64::from(link.waiting);
            counted.waits_ddr += alike * u64::from(signals.waits_ddr());
            counted.waits_cell += alike * u64::from(signals.waits_cell());
            chip.pass(&signals, alike);
            link.earn(timing.period, alike);
            continue;
        }
        counted.cycles += 1;
        counted.waits_host += u64::from(link.waiting);
        counted.items += u64::from(sent);
        let done = chip.done;
        chip.clock(&signals, offered.filter(|_| sent).and_then(|(_, command)| command), &mut counted);
        link.clock(
            if sent { credit - timing.period } else { credit },
            sent && offered.is_some_and(|(w, _)| w),
            done,
            timing.sync,
        );
        if sent {
            item = items.next();
        }
    }
}

/// Register writes: whether the host waits behind it, and the command that it completes, if any.
fn items(
    commands: &Commands,
    registers: Registers,
    configuration: usize,
) -> impl Iterator<Item = (bool, Option<Command>)> {
    let batches = commands.batches().iter().flat_map(move |batch| {
        let Batch { operation, sync, whole, in_turn, .. } = *batch;
        let header = Command::Header { operation, gates: batch.gates.len(), sync, whole, in_turn };
        let last = batch.gates.end - 1;
        let gates = batch.gates.clone().flat_map(move |i| {
            let more = if batch.operation == Operation::And { commands.order().and_accesses } else { 0 };
            let parts = std::iter::repeat_n((false, None), registers.count() - 1 + more);
            parts.chain([(batch.sync && i == last, Some(Command::Gate(commands.gates()[i])))])
        });
        std::iter::once((false, Some(header))).chain(gates)
    });
    std::iter::repeat_n((false, None), configuration).chain(batches)
}

/// `host_link.sv`.
#[derive(Default)]
struct Link {
    credit: u32,
    waiting: bool,
    expected: u32,
    slept: u32,
}

impl Link {
    fn credit_with(&self, period: u32) -> u32 {
        if self.credit >= period { period + OVER } else { self.credit + 64 }
    }

    /// Clocks until the host sees that it need not wait, which pass.
    fn sleep(&mut self, timing: Timing, done: u32) -> u32 {
        let clocks =
            if self.waiting && done == self.expected { timing.sync.saturating_sub(self.slept) } else { 0 };
        self.earn(timing.period, clocks.into());
        self.slept += clocks;
        clocks
    }

    /// Credit of some clocks in which nothing is sent.
    fn earn(&mut self, period: u32, clocks: u64) {
        for _ in 0..clocks {
            if self.credit == period + OVER {
                break;
            }
            self.credit = self.credit_with(period);
        }
    }

    /// Clocks in which the link offers nothing new and only credit grows, if the chip does nothing either.
    fn still(&self, period: u32, more: bool, done: u32) -> u64 {
        match (self.waiting, self.credit < period) {
            (true, _) if done == self.expected => 0,
            // The first clock of enough credit offers a write.
            (false, true) if more => u64::from((period - self.credit - 1) / 64),
            _ => LONG,
        }
    }

    fn clock(&mut self, credit: u32, waits: bool, done: u32, sync: u32) {
        self.credit = credit;
        let there = self.waiting && done == self.expected;
        if waits {
            self.waiting = true;
            self.expected += 1;
            self.slept = 0;
        } else if there && self.slept >= sync {
            self.waiting = false;
        } else if there {
            self.slept += 1;
        }
    }
}

/// `sifo.sv` and `ddr_model.sv`.
struct Chip {
    now: u64,
    queue: VecDeque<Command>,
    // sf_dispatcher
    left: usize,
    flight: u64,
    operation: Operation,
    sync: bool,
    in_turn: bool,
    closing: bool,
    done: u32,
    // sf_controller
    fetch: bool,
    fetch_and: bool,
    new: bool,
    gate: [RawAddress; 3],
    have: [bool; 2],
    writing: [bool; 2],
    // ddr_model
    waited: [u32; 2],
    // cells: where each result goes, and the clock from which it is there
    xors: VecDeque<RawAddress>,
    most_xors: usize,
    ands: VecDeque<(RawAddress, u64)>,
    most_ands: usize,
    /// The clock from which the cell that comes next is free; cells are taken in turn.
    free_from: VecDeque<u64>,
    /// A table is in the queue to the host.
    table: bool,
}

/// A chip's wires in a clock.
struct Signals {
    /// A gate has its operands, and whether its cell has room.
    offered: bool,
    room: bool,
    begins: bool,
    taken: Option<[RawAddress; 3]>,
    /// The ports of the DDR memory.
    reading: [bool; 2],
    busy: [bool; 2],
    complete: [bool; 2],
    /// The result is of an AND.
    and: bool,
    to_ram: bool,
    to_ddr: Option<usize>,
}

impl Signals {
    fn handed(&self) -> bool {
        self.offered && self.room
    }

    fn written(&self) -> bool {
        self.to_ram || self.to_ddr.is_some()
    }

    fn waits_ddr(&self) -> bool {
        self.busy != [false; 2] && !self.offered
    }

    fn waits_cell(&self) -> bool {
        self.offered && !self.room
    }

    /// Whether the chip changes at the edge, but for what counts time.
    fn moves(&self) -> bool {
        self.handed() || self.begins || self.taken.is_some() || self.written() || self.complete != [false; 2]
    }
}

fn in_ram(address: RawAddress) -> bool {
    address & 1 == 1
}

impl Chip {
    fn new([ands, xors]: [usize; 2]) -> Self {
        Self {
            now: 0,
            queue: VecDeque::new(),
            left: 0,
            flight: 0,
            operation: Operation::Xor,
            sync: false,
            in_turn: false,
            closing: false,
            done: 0,
            fetch: false,
            fetch_and: false,
            new: false,
            gate: [0; 3],
            have: [false; 2],
            writing: [false; 2],
            waited: [0; 2],
            xors: VecDeque::new(),
            most_xors: xors,
            ands: VecDeque::new(),
            most_ands: ands,
            free_from: VecDeque::from(vec![0; ands]),
            table: false,
        }
    }

    fn idle(&self) -> bool {
        self.left == 0 && self.flight == 0 && !self.closing && self.queue.is_empty()
    }

    /// What happens in this clock, whatever arrives.
    fn signals(&self, latency: u32) -> Signals {
        let head = self.queue.front().copied();
        // The fetched gate goes to its cell.
        let offered = self.fetch && self.have == [true; 2];
        let room = if self.fetch_and {
            self.ands.len() < self.most_ands && self.free_from[0] <= self.now
        } else {
            self.xors.len() < self.most_xors
        };
        let handed = offered && room;
        // The dispatcher's next.
        let may_begin = self.left == 0 && !self.closing && self.flight == 0;
        let begins = match head {
            Some(Command::Header { gates, whole, .. }) => may_begin && (!whole || self.queue.len() > gates),
            _ => false,
        };
        let turn = !self.in_turn || self.flight == 0;
        let taken = match head {
            Some(Command::Gate(gate)) if self.left > 0 && turn && (!self.fetch || handed) => Some(gate),
            _ => None,
        };
        // DDR ports.
        let reading = [0, 1].map(|i| self.fetch && !self.have[i] && !in_ram(self.gate[i]));
        let busy = [0, 1].map(|i| self.writing[i] || reading[i]);
        let complete = [0, 1].map(|i| busy[i] && self.waited[i] + 1 >= latency);
        // Results.
        let and = self.ands.front().filter(|(_, there)| *there <= self.now).map(|(out, _)| *out);
        let result = and.or_else(|| self.xors.front().copied());
        let to_ram = result.is_some_and(in_ram);
        let port = [0, 1].into_iter().find(|i| !busy[*i]);
        let to_ddr = if to_ram { None } else { result.and(port) };
        Signals { offered, room, begins, taken, reading, busy, complete, and: and.is_some(), to_ram, to_ddr }
    }

    /// Clocks that go like this one, in which nothing happens but that time passes, if nothing arrives.
    fn still(&self, signals: &Signals, latency: u32) -> u64 {
        let ended = self.closing && self.flight == 0;
        if self.new || self.table || ended || signals.moves() {
            return 0;
        }
        let ports = (0..2).filter(|i| signals.busy[*i]).map(|i| u64::from(latency - 1 - self.waited[i]));
        let result = self.ands.front().map(|(_, there)| *there);
        let cell =
            if signals.waits_cell() && self.fetch_and { self.free_from.front().copied() } else { None };
        let times = [result, cell].into_iter().flatten().filter(|time| *time > self.now);
        ports.chain(times.map(|time| time - self.now)).min().unwrap_or(LONG)
    }

    /// Lets clocks pass that are [`Self::still`].
    fn pass(&mut self, signals: &Signals, clocks: u64) {
        self.now += clocks;
        for i in (0..2).filter(|i| signals.busy[*i]) {
            self.waited[i] += clocks as u32;
        }
    }

    fn clock(&mut self, signals: &Signals, arrives: Option<Command>, counted: &mut Clocks) {
        let Signals { reading, busy, complete, taken, to_ram, to_ddr, .. } = *signals;
        let handed = signals.handed();
        let retired = u64::from(to_ram)
            + [0, 1].into_iter().map(|i| u64::from(self.writing[i] && complete[i])).sum::<u64>();

        counted.gates += u64::from(handed);
        counted.ddr_accesses += complete.iter().map(|c| u64::from(*c)).sum::<u64>();
        counted.waits_ddr += u64::from(signals.waits_ddr());
        counted.waits_cell += u64::from(signals.waits_cell());

        // The edge.
        self.table = false;
        if signals.written() {
            if signals.and {
                self.ands.pop_front();
                self.free_from.push_back(self.now + 1);
                self.table = true;
            } else {
                self.xors.pop_front();
            }
        }
        if handed {
            if self.fetch_and {
                self.free_from.pop_front();
                self.ands.push_back((self.gate[2], self.now + AND_CLOCKS));
            } else {
                self.xors.push_back(self.gate[2]);
            }
        }
        let ended = self.closing && self.flight == 0;
        self.flight = self.flight + u64::from(taken.is_some()) - retired;
        if signals.begins {
            let Some(&Command::Header { operation, gates, sync, in_turn, .. }) = self.queue.front() else {
                unreachable!("a header begins")
            };
            (self.operation, self.left, self.sync, self.closing) =
                (operation, gates, sync, sync && gates == 0);
            self.in_turn = in_turn;
        } else if taken.is_some() {
            self.left -= 1;
            self.closing = self.sync && self.left == 0;
        } else if ended {
            self.closing = false;
        }
        self.done += u32::from(ended);
        for i in 0..2 {
            let got = (self.new && in_ram(self.gate[i])) || (reading[i] && !self.writing[i] && complete[i]);
            self.have[i] = taken.is_none() && (self.have[i] || got);
            self.writing[i] = to_ddr == Some(i) || (self.writing[i] && !complete[i]);
            self.waited[i] = if busy[i] && !complete[i] { self.waited[i] + 1 } else { 0 };
        }
        self.new = taken.is_some();
        self.fetch = taken.is_some() || (self.fetch && !handed);
        if let Some(gate) = taken {
            (self.gate, self.fetch_and) = (gate, self.operation == Operation::And);
        }
        if signals.begins || taken.is_some() {
            self.queue.pop_front();
        }
        if let Some(command) = arrives {
            self.queue.push_back(command);
        }
        self.now += 1;
    }
}
