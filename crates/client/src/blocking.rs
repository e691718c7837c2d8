//! The client for programs without an asynchronous runtime: each call returns when its answer is there.
//!
//! ```no_run
//! use blindcore_client::blocking::Client;
//!
//! let client = Client::connect("http://127.0.0.1:7700")?;
//! let table = client.table("people")?; // fetches what a client keeps, once an epoch
//! if let Some(record) = table.get("ada")?.found {
//!     println!("{:?}", record.values);
//! }
//! # Ok::<(), blindcore_client::Error>(())
//! ```
//!
//! Asynchronous code has [`crate::Client`]: a call here blocks its thread, so it is refused on one that drives a runtime.

use std::future::Future;
use std::sync::Arc;

use blindcore_wire::{TableDescription, proto};
use tokio::runtime::{Builder, Runtime};

use crate::{Error, Lookup, Options, TableClient};

/// A connection to a server. Clones share it.
#[derive(Clone)]
pub struct Client {
    runtime: Arc<Runtime>,
    client: crate::Client,
}

/// A table, ready for lookups at one epoch.
pub struct Table {
    runtime: Arc<Runtime>,
    table: TableClient,
}

impl Client {
    /// As [`crate::Client::connect`].
    ///
    /// # Errors
    /// As [`crate::Client::connect`], or the system gives no thread.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, Options::default())
    }

    /// As [`crate::Client::connect_with`].
    ///
    /// # Errors
    /// As [`crate::Client::connect_with`], or the system gives no thread.
    pub fn connect_with(url: &str, options: Options) -> Result<Self, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::Blocking);
        }
        // A thread of its own drives connections between two calls, so that keep-alives are answered.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|source| Error::Runtime { source })?;
        let client = runtime.block_on(crate::Client::connect_with(url, options))?;
        Ok(Self { runtime: Arc::new(runtime), client })
    }

    /// The tables that the server has.
    ///
    /// # Errors
    /// As [`crate::Client::tables`].
    pub fn tables(&self) -> Result<Vec<proto::TableSummary>, Error> {
        self.runtime.block_on(self.client.tables())
    }

    /// Opens a table: fetches what a client keeps of it, unless it is in the cache.
    ///
    /// # Errors
    /// As [`crate::Client::table`].
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let table = self.runtime.block_on(self.client.table(name))?;
        Ok(Table { runtime: self.runtime.clone(), table })
    }
}

impl Table {
    /// Looks a key up, as [`TableClient::get`].
    ///
    /// # Errors
    /// As [`TableClient::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Lookup, Error> {
        self.wait(self.table.get(key))
    }

    /// Looks keys up in as few requests as the server allows, as [`TableClient::get_many`].
    ///
    /// # Errors
    /// As [`TableClient::get_many`].
    pub fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Lookup>, Error> {
        self.wait(self.table.get_many(keys))
    }

    /// Looks a row up by its number, as [`TableClient::get_index`].
    ///
    /// # Errors
    /// As [`TableClient::get_index`].
    pub fn get_index(&self, index: u64) -> Result<Lookup, Error> {
        self.wait(self.table.get_index(index))
    }

    /// Looks rows up by their numbers, as [`TableClient::get_many_index`].
    ///
    /// # Errors
    /// As [`TableClient::get_many_index`].
    pub fn get_many_index(&self, indices: &[u64]) -> Result<Vec<Lookup>, Error> {
        self.wait(self.table.get_many_index(indices))
    }

    /// The table at the server's newest epoch. What did not change is not fetched again.
    ///
    /// # Errors
    /// As [`TableClient::refresh`].
    pub fn refresh(&self) -> Result<Self, Error> {
        Ok(Self { runtime: self.runtime.clone(), table: self.wait(self.table.refresh())? })
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        self.table.description()
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }
}
