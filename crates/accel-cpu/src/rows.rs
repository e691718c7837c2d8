//! The contract operation over [`Layout::Rows`]: any words, any moduli, one row of the database an output.
//!
//! The query is brought into the rows' own order first, `[m, p][c][j, k][d]`, so that an output's channel is
//! the elementwise product of two contiguous blocks of `j * k` by `d` words, summed over `j * k`.
//!
//! [`Layout::Rows`]: blindcore_accel::Layout::Rows

use blindcore_accel::contract::Shape;
use blindcore_accel::{Error, SharedBytes, Word, Words};
use blindcore_math::Modulus;
use rayon::prelude::*;

use crate::isa::Isa;

/// Checks that packed rows can be read as words and hold nothing but residues.
pub(crate) fn check_packed(shape: &Shape, pieces: &[SharedBytes]) -> Result<(), Error> {
    let width = shape.database.bytes();
    let block = shape.depth() * shape.d;
    let mut position = 0;
    for piece in pieces {
        let bytes = (**piece).as_ref();
        if bytes.as_ptr().align_offset(width) != 0 {
            let want = format!("{width}-byte aligned");
            let got = bytes.as_ptr().addr() % width;
            let what = "start of a packed piece";
            return Err(Error::Length { what, got, want, unit: "bytes past alignment" });
        }
        for word in bytes.chunks_exact(width) {
            let modulus = shape.moduli[position / block % shape.c()];
            let value = read(shape.database, word);
            if value > modulus.max_residue() {
                let modulus = modulus.to_string();
                return Err(Error::Residue { what: "packed database", value, position, modulus });
            }
            position += 1;
        }
    }
    Ok(())
}

fn read(word: Word, bytes: &[u8]) -> u64 {
    let mut wide = [0u8; 8];
    wide[..word.bytes()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// Runs the operation. The query has been checked and gathers `queries` parts.
pub(crate) fn run(_isa: Isa, shape: &Shape, pieces: &[&[u8]], query: &Words, queries: usize) -> Words {
    let query = reorder_query(shape, query, queries);
    let width = shape.database.bytes();
    let block = shape.depth() * shape.d;
    let row_bytes = shape.c() * block * width;
    let rows: Vec<&[u8]> = pieces.iter().flat_map(|p| p.chunks_exact(row_bytes)).collect();
    let outputs: Vec<Vec<u64>> = rows
        .par_iter()
        .map(|row| {
            let mut out = Vec::with_capacity(queries * shape.p * shape.c() * shape.d);
            for mp in 0..queries * shape.p {
                for (c, modulus) in shape.moduli.iter().enumerate() {
                    let query = &query[(mp * shape.c() + c) * block..][..block];
                    let row = &row[c * block * width..][..block * width];
                    portable(*modulus, shape.database, shape.d, query, row, &mut out);
                }
            }
            out
        })
        .collect();
    let (c, d) = (shape.c(), shape.d);
    Words::from_fn(shape.query_word(), shape.answer_len(queries), |at| {
        let (at, d_at) = (at / d, at % d);
        let (at, c_at) = (at / c, at % c);
        let (at, q) = (at / shape.q, at % shape.q);
        let (at, p) = (at / shape.p, at % shape.p);
        let (m, n) = (at / shape.n, at % shape.n);
        outputs[n * shape.q + q][((m * shape.p + p) * c + c_at) * d + d_at]
    })
}

/// Brings a query from canonical order to `[m, p][c][j, k][d]`.
fn reorder_query(shape: &Shape, query: &Words, queries: usize) -> Vec<u64> {
    let mut out = Vec::with_capacity(query.len());
    for m in 0..queries {
        for p in 0..shape.p {
            for c in 0..shape.c() {
                for jk in 0..shape.depth() {
                    for d in 0..shape.d {
                        out.push(query.get(shape.query_index([m, jk / shape.k, p, jk % shape.k, c, d])));
                    }
                }
            }
        }
    }
    out
}

/// `out` gains, for each coefficient, the sum over the block's depth of query times row.
fn portable(modulus: Modulus, word: Word, d: usize, query: &[u64], row: &[u8], out: &mut Vec<u64>) {
    let width = word.bytes();
    for coefficient in 0..d {
        let mut sum = 0u64;
        for at in (coefficient..query.len()).step_by(d) {
            sum = modulus.mul_add(query[at], read(word, &row[at * width..][..width]), sum);
        }
        out.push(sum);
    }
}
