"""host_link against Python: writes no faster than their time and no slower, and waits that end when the batch is done."""

import random

import cocotb
from common import Coverage, begin, clock, settle, value


@cocotb.test()
async def rates_and_waits(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "rates_and_waits", sent=1500, held=100, early=100, waits=100, sleeps=100, done_before=10, back_to_back=100,
        at_the_rate=6, saved_up=10,
    )
    await begin(dut, period_i=0, sync_i=0, valid_i=0, item_i=0, ready_i=0, done_i=0)
    cycles = credit = expected = done = 0
    for period in (0, 64, 640, 427, 65, 100, 1, 5000, 65535, 640):
        for sync, often, taken, waits in ((0, 1, 1, 0), (0, 1, 1, 0.1), (270, 0.6, 0.6, 0.1), (3, 1, 0.2, 0.3), (1, 0.05, 1, 0)):
            dut.period_i.value, dut.sync_i.value = period, sync
            # Whatever the time between was, credit is at most a write's and what a clock brings.
            waiting, offered, slept, due, first, sent, before = False, None, 0, None, None, 0, False
            steps = 400 if period < 5000 else 4 * period // 64
            for step in range(steps):
                if offered is None and rng.random() < often and step < steps - 60:
                    offered = int(rng.random() < waits) << 36 | rng.getrandbits(36)
                ready = rng.random() < taken
                if due is not None and step >= due:
                    done, due = done + 1, None
                dut.valid_i.value, dut.ready_i.value, dut.done_i.value = int(offered is not None), int(ready), done & (1 << 32) - 1
                item = offered if offered is not None else rng.getrandbits(37)
                dut.item_i.value = item
                await settle()
                # What has been earned, and no more than that of a write and a clock.
                now = min(credit + 64, period + 63)
                valid = offered is not None and not waiting and now >= period
                assert value(dut.valid_o) == valid, (period, credit, waiting)
                assert value(dut.ready_o) == (valid and ready)
                assert value(dut.waits_o) == waiting
                if valid:
                    assert value(dut.address_o) == item >> 32 & 15 and value(dut.data_o) == item & 0xFFFFFFFF
                cover.hit("held", valid and not ready)
                cover.hit("early", offered is not None and not waiting and not valid)
                cover.hit("saved_up", now == period + 63 and period > 64)
                credit = now
                go = valid and ready
                if waiting:
                    if done == expected:
                        cover.hit("sleeps", slept < sync)
                        if slept >= sync:
                            waiting = False
                        slept += 1
                if go:
                    credit -= period
                    sent += 1
                    cover.hit("sent")
                    cover.hit("back_to_back", before)
                    first = step if first is None else first
                    if item >> 36:
                        waiting, slept, expected = True, 0, expected + 1
                        # Done a while later, or in the clock of the write already.
                        due = step + rng.choice((0, 1, 2, 20, 50))
                        cover.hit("done_before", due == step)
                        if due == step:
                            done, due = done + 1, None
                        cover.hit("waits")
                    offered = None
                before = go
                if step == steps - 61 and often == taken == 1 and not waits and period:
                    # With someone always ready, writes come at their rate: from the first on, whole clocks apart.
                    each = max(period, 64)  # in 1/64 clocks
                    assert (sent - 1) * each - 64 <= (step - first) * 64 <= sent * each + 64, (period, sent, step - first)
                    cover.hit("at_the_rate", period > 64)
                cycles += 1
                await clock(dut)
            while waiting or offered is not None or due is not None:
                if due is not None:
                    done, due = done + 1, None
                dut.done_i.value, dut.ready_i.value = done & (1 << 32) - 1, 1
                dut.valid_i.value = int(offered is not None)
                await settle()
                now = min(credit + 64, period + 63)
                valid = offered is not None and not waiting and now >= period
                assert value(dut.valid_o) == valid
                credit = now - period if valid else now
                if waiting:
                    if done == expected:
                        if slept >= sync:
                            waiting = False
                        slept += 1
                if valid:
                    if offered >> 36:
                        waiting, slept, expected, due = True, 0, expected + 1, 1
                    offered = None
                cycles += 1
                await clock(dut)
            dut.valid_i.value = 0
            # Idle until all is earned that can be.
            for _ in range(2):
                await settle()
                credit = min(credit + 64, period + 63)
                cycles += 1
                await clock(dut)
    cover.check(cycles)
