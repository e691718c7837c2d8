//! What a database says of itself, for programs.

use serde_json::json;

use crate::manifest::{PartManifest, to_hex};
use crate::{StoreError, Stored};

impl Stored {
    /// The database as one JSON object: its table, and parameters and sizes of each part. `db inspect --json` prints it.
    ///
    /// # Errors
    /// As [`Stored::description`].
    pub fn describe(&self) -> Result<serde_json::Value, StoreError> {
        let stored = self;
        let manifest = stored.manifest();
        let part = |part: &PartManifest| -> Result<serde_json::Value, StoreError> {
            let params = part.params()?;
            Ok(json!({
                "scheme": params.scheme,
                "record_bytes": params.geometry.record_bytes,
                "groups": params.geometry.groups,
                "rows": params.geometry.rows(),
                "columns": params.geometry.columns,
                "slots": params.geometry.slots(),
                "layout": part.layout,
                "database_bytes": part.shards.iter().map(|s| s.bytes).sum::<u64>(),
                "shards": part.shards.len(),
                "hint_bytes": part.hint.bytes,
                "proofs": part.proofs,
                "state_bytes": part.derived().map(|s| s.bytes).sum::<u64>(),
                "query_bytes": params.query_bytes(),
                "answer_bytes": params.answer_bytes(),
                "failure_log2": -params.failure_log2(),
            }))
        };
        let security = manifest.records.params()?.security();
        Ok(json!({
            "name": manifest.name,
            "epoch": manifest.epoch,
            "base_epoch": manifest.base_epoch(),
            "rows": manifest.live_rows(),
            "digest": to_hex(stored.description()?.digest()),
            "signed_by": manifest.signed.as_ref().map(|s| &s.key),
            "blocks": manifest.blocks(),
            "key": manifest.key,
            "values": manifest.values,
            "security": security.map(|s| json!({"bits": s.bits, "estimator": s.estimator})),
            "records": part(&manifest.records)?,
            "keys": manifest.keys.as_ref().map(part).transpose()?,
            "changes": manifest.changes.as_ref().map(|c| part(&c.records)).transpose()?,
            "new_keys": manifest.changes.as_ref().and_then(|c| c.keys.as_ref()).map(part).transpose()?,
        }))
    }
}
