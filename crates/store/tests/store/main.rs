//! Databases: built, streamed, updated. One program: each program is linked by itself. `bounded_memory`
//! measures its own process and stays alone.

mod build;
mod columns;
mod following;
mod following_any;
mod golden;
mod kinds;
mod plain;
#[cfg(target_os = "linux")]
mod postgres_tables;
mod servers;
mod stream;
mod update;
