//! Tables 1, 3 and 4: what the paper's netlists consist of.

use blindcore_accel_rtl::sifo::layers::Cells;
use blindcore_accel_rtl::sifo::survey::Survey;
use blindcore_circuit::problems::published::{ROWS, netlist};
use blindcore_units::Progress;

use super::{Line, PaperTable};
use crate::figures::figures;
use crate::jobs::run_all;

/// ANDs that an FPGA holds in Table 1.
const ANDS: usize = 10;
/// The tables, and what they count.
const TABLES: [(u32, &str); 3] =
    [(1, "Table 1: gates"), (3, "Table 3: wires"), (4, "Table 4: shares of wires")];
const NOTE: &str = "The netlists were recovered from these very figures, so none is counted as met. FlexSC's wires are constants too, and its D is of \
                    wires that the next layer reads. Our own circuits stand beside the paper's in `tables.md`.";

/// Those of the tables that are asked for, all if none is.
pub(super) fn tables(asked: &[u32], progress: &mut dyn Progress) -> anyhow::Result<Vec<PaperTable>> {
    let wanted = TABLES.iter().filter(|(number, _)| asked.is_empty() || asked.contains(number));
    let mut tables: Vec<PaperTable> = wanted
        .map(|(number, title)| PaperTable { number: *number, title, note: NOTE, problems: Vec::new() })
        .collect();
    if tables.is_empty() {
        return Ok(tables);
    }
    let cells = Cells::new(ANDS, None)?;
    let count = |place: usize| {
        let row = &ROWS[place];
        Ok(figures(&Survey::new(&netlist(row).wiring(), cells, 0, &mut ()), ANDS, Some(&row.figures)))
    };
    let counted = run_all("counting gates", &ROWS.map(|row| row.figures.gates), count, progress)?;
    for (row, figures) in ROWS.iter().zip(counted) {
        let mut number = "";
        for figure in figures {
            if !figure.table.is_empty() {
                number = figure.table;
            }
            let Some(table) = tables.iter_mut().find(|table| table.title.split(':').next() == Some(number))
            else {
                continue;
            };
            let line = Line {
                id: format!("sifo.table{}.{}.{}", table.number, row.name, figure.id),
                what: figure.what,
                value: figure.here,
                unit: "",
                paper: figure.paper,
                jobs: Vec::new(),
            };
            match table.problems.last_mut().filter(|(name, _)| *name == row.name) {
                Some((_, lines)) => lines.push(line),
                None => table.problems.push((row.name, vec![line])),
            }
        }
    }
    Ok(tables)
}
