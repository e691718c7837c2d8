//! The contract operation, OnionChopper's basic operation:
//!
//! ```text
//! C[m,n,p,q,c,d] = sum over j, k of A[m,j,p,k,c,d] * B[j,n,k,q,c,d]   mod moduli[c]
//! ```
//!
//! `B` is the database: huge, placed once, streamed. `A` is the query: small, reused. Operands and results
//! lie in *canonical order*: row-major in the order of the indices above. Source: Shay 2023, section 3.3;
//! her Table 3.2 writes SimplePIR with the database as `A`, here it is always `B`, so SimplePIR's rows are
//! `n` and gathered queries are `m`.

mod operation;
mod shape;

pub use operation::{
    Contract, ContractCapabilities, ContractSlot, Database, Pass, Placed, SharedBytes, Streaming, whole,
};
pub use shape::{Shape, Window, reference};
