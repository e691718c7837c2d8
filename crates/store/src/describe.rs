//! What a database says of itself, for programs and for people.

use blindcore_lookup::Params;
use blindcore_units::{bytes, quoted, shown};
use serde_json::json;

use crate::manifest::{BatchesManifest, PartManifest, to_hex};
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
            "key_type": manifest.key_type,
            "values": manifest.values,
            "security": security.map(|s| json!({"bits": s.bits, "quantum_bits": s.quantum_bits, "estimator": s.estimator})),
            "records": part(&manifest.records)?,
            "keys": manifest.keys.as_ref().map(part).transpose()?,
            "batches": manifest.batches.as_ref().map(|batches| {
                let mut json = part(&batches.records)?;
                (json["keys"], json["buckets"]) = (batches.keys.into(), batches.buckets.into());
                json["batch_failure_log2"] = batches.failure_log2().map(|log2| -log2).into();
                Ok::<_, StoreError>(json)
            }).transpose()?,
            "changes": manifest.changes.as_ref().map(|c| part(&c.records)).transpose()?,
            "new_keys": manifest.changes.as_ref().and_then(|c| c.keys.as_ref()).map(part).transpose()?,
        }))
    }

    /// The database for people, some lines: its table, and parameters and sizes of each part. `db inspect` prints it.
    ///
    /// # Errors
    /// As [`Stored::description`].
    pub fn summary(&self) -> Result<String, StoreError> {
        let manifest = self.manifest();
        let blocks = match manifest.blocks() {
            1 => String::new(),
            n => format!(", in up to {n} slots, each looked up on its own"),
        };
        let found = match (&manifest.key, &manifest.keys) {
            (Some(key), Some(_)) => format!("by {} or by row number", quoted(key)),
            (Some(key), None) => format!("by {}", quoted(key)),
            (None, _) => "by row number".into(),
        };
        let columns = if manifest.values.is_empty() {
            "nothing: membership alone".into()
        } else {
            manifest.values.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ")
        };
        let mut text = format!(
            "table {}, epoch {}: {} rows, found {found}\n  a record is      {columns}{blocks}\n  digest           {}\n",
            manifest.name,
            manifest.epoch,
            manifest.live_rows(),
            to_hex(self.description()?.digest())
        );
        if let Some(form) = manifest.key_type {
            text += &format!("  keys are         {}\n", form.title());
        }
        if let Some(signed) = &manifest.signed {
            text += &format!("  signed by        {}\n", signed.key);
        }
        let mut part = |title: &str, part: &PartManifest| -> Result<(), StoreError> {
            let params: Params = part.params()?;
            let scheme = params.scheme.title();
            let bits = params.security().map_or("no security".into(), |s| match s.quantum_bits {
                Some(quantum) => format!("{} bits, {quantum} against quantum computers", s.bits),
                None => format!("{} bits", s.bits),
            });
            let derived: u64 = part.derived().map(|s| s.bytes).sum();
            let database: u64 = part.shards.iter().map(|s| s.bytes).sum();
            let each = if blocks.is_empty() { "a lookup" } else { "a slot" };
            text += &format!(
                "{title}\n  scheme           {scheme}, {bits}; a lookup fails less than once in 2^{}\n  \
             matrix           {} rows by {} columns of bytes; slots: {} of {} B\n  \
             on the server    {} database{}\n  \
             a client fetches {} hint once an epoch, then {} up and {} down {each}\n",
                params.failure_log2().min(128.0).floor(),
                params.geometry.rows(),
                params.geometry.columns,
                params.geometry.slots(),
                params.geometry.record_bytes,
                bytes(database),
                if derived > 0 { format!(" and {} beside it", bytes(derived)) } else { String::new() },
                bytes(part.hint.bytes),
                bytes(params.query_bytes() as u64),
                bytes(params.answer_bytes() as u64),
            );
            text += &match &part.proofs {
                Some(proofs) => format!(
                    "  proofs           {} B of a slot, {} of the hint: a wrong answer is noticed\n",
                    proofs.slot_bytes(),
                    bytes(proofs.root_bytes())
                ),
                None => {
                    "  proofs           none: a wrong answer is not noticed (db build --proofs)\n".to_owned()
                }
            };
            Ok(())
        };
        part("records", &manifest.records)?;
        if let Some(keys) = &manifest.keys {
            part("directory of keys", keys)?;
        }
        if let Some(batches) = &manifest.batches {
            let BatchesManifest { keys, buckets, records } = batches;
            let fails = batches.failure_log2().map_or(String::new(), |log2| {
                format!(", which fail a key once in 2^{} batches at most", log2.floor())
            });
            let title = format!(
                "batches of up to {keys} keys: every record three times, in {buckets} buckets{fails}; of each bucket"
            );
            part(&title, records)?;
        }
        if let Some(changes) = &manifest.changes {
            part(&format!("what changed since epoch {}", manifest.base_epoch()), &changes.records)?;
            if let Some(keys) = &changes.keys {
                part("directory of the keys that came since", keys)?;
            }
        }
        Ok(text)
    }
}
