//! `blindcore repro`: a paper's figures, made anew beside those that it published.

pub(crate) mod phepu;
pub(crate) mod sifo;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Repro {
    /// Tables 5 to 11 of SIFO (2019) and its bandwidths, on the paper's own netlists
    #[command(after_help = "\
Examples:
  blindcore repro sifo                        tables in Markdown, in some ten seconds
  blindcore repro sifo --simulate             what can be simulated, simulated too: some two minutes
  blindcore repro sifo --table 11 --simulate  only the last table
  blindcore repro sifo --today                today's overlay beside the paper's
  blindcore repro sifo --json                 the same rows for programs

Clocks come from a model of the overlay that takes as many as its SystemVerilog; --simulate runs that as well, for all
problems up to the 64-bit multiplication, and says whether it takes the same clocks; it compares every table and label
with the CPU's, too. One set of link and memory parameters serves all of Table 11: what is fitted is said.")]
    Sifo(sifo::Sifo),
    /// Figures 15.4.5 to 15.4.7 of PH-EPU (2023), on the simulated chip and card
    #[command(after_help = "\
Examples:
  blindcore repro phepu                       tables in Markdown, in a minute or two
  blindcore repro phepu --figure 15.4.6       only rates and sparsity
  blindcore repro phepu --json                the same rows for programs

Clocks are the simulated hardware's own, at 4096 bits, and exact; times are at 500 MHz. The CPU's rates are measured on
this machine in the same run. Areas are those that `make -C hw syn` left in hw/syn/results.")]
    Phepu(phepu::Phepu),
}
