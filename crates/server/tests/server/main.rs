//! The server's library, as a program uses it.

mod host;
