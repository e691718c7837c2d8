//! The HTTP face, for browsers and for people with curl.
//!
//! | request                                       | answer                                                      |
//! |-----------------------------------------------|-------------------------------------------------------------|
//! | `GET /v1/tables`                              | `{"tables": [...]}`: name, epoch, rows, keyed               |
//! | `GET /v1/tables/NAME`                         | a table: digests and salt in hex, seeds in base64           |
//! | `GET /v1/tables/NAME/PART/hint?epoch=EPOCH`   | the hint; `Range: bytes=N-` and `If-None-Match` work        |
//! | `POST /v1/keys`                               | body a `RegisterKeysRequest`; see [`crate::KeysConfig`]     |
//! | `POST /v1/query`                              | body a `QueryRequest`, answer a `QueryResponse`             |
//! | `GET /livez`, `GET /readyz`                   | 200; `/readyz` 503 while the server drains, or fails to     |
//! |                                               | serve a table                                               |
//!
//! A server with tokens answers to `Authorization: Bearer TOKEN` alone, but for the last line.
//! A refusal is `{"error": ..., "reason": ...}` under 400, 401, 404, 405, 408, 409, 413, 416, 429, 500 or 503, its reason
//! also in the header `blindcore-reason`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Extract};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use blindcore_lookup::Geometry;
use blindcore_wire::{PartKind, Reason, base64, proto};
use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE, RETRY_AFTER,
};
use http::{HeaderMap, Method, StatusCode};
use prost::Message;
use serde_json::{Value as JsonValue, json};
use tower_http::cors::{Any, CorsLayer};

use crate::admission::admit;
use crate::clients::Client;
use crate::grpc::chunks;
use crate::permit::MemoryPermit;
use crate::refusal::{self, Refusal};
use crate::sizes::HINT_BUFFERS;
use crate::state::{HostedTable, State};

type Shared = Extract<Arc<State>>;

pub(crate) fn router(state: Arc<State>) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE, RANGE, IF_RANGE, IF_NONE_MATCH])
        .expose_headers([ETAG, RETRY_AFTER, ACCEPT_RANGES, CONTENT_RANGE, CONTENT_LENGTH, refusal::HEADER]);
    Router::new()
        .route("/v1/tables", get(list))
        .route("/v1/tables/{name}", get(table))
        .route("/v1/tables/{name}/{part}/hint", get(hint))
        .route("/v1/keys", post(keys))
        .route("/v1/query", post(query))
        .layer(from_fn_with_state(state.front.clone(), admit))
        .layer(cors)
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .fallback(async || {
            let why = "there is nothing here; GET /v1/tables lists the tables, and gRPC clients use \
                       blindcore.lookup.v1.Lookup";
            Refusal::new(Reason::Malformed, why).with_status(StatusCode::NOT_FOUND)
        })
        .layer(map_response(refusal::in_json))
        .with_state(state)
}

async fn ready(Extract(state): Shared) -> Response {
    if !state.front.ready.load(Ordering::Relaxed) {
        return Refusal::new(Reason::Draining, "the server is shutting down; use another one")
            .into_response();
    }
    // Anybody may ask, and names are for those with tokens.
    let failing = state.failing();
    if failing == 0 {
        return "ready\n".into_response();
    }
    let message = format!("tables that the server fails to serve: {failing}; its log names the files");
    Refusal::new(Reason::Internal, message).with_status(StatusCode::SERVICE_UNAVAILABLE).into_response()
}

async fn list(
    Extract(state): Shared,
    Extension(held): Extension<Arc<MemoryPermit>>,
) -> Result<Json<JsonValue>, Refusal> {
    held.take(state.listing_bytes()).map_err(|r| state.front.refused(r))?;
    let tables: Vec<JsonValue> = state
        .newest()
        .iter()
        .map(|t| {
            let proto::TableSummary { name, epoch, rows, keyed } = t.summary();
            json!({ "name": name, "epoch": epoch, "rows": rows, "keyed": keyed })
        })
        .collect();
    Ok(Json(json!({ "tables": tables })))
}

async fn table(
    Extract(state): Shared,
    Path(name): Path<String>,
    Extension(held): Extension<Arc<MemoryPermit>>,
) -> Result<Json<JsonValue>, Refusal> {
    let table = state.table(&name, None);
    let table = table.and_then(|t| held.take(t.description_bytes()).map(|()| t));
    let table = table.map_err(|r| state.front.refused(r))?;
    let description = &table.description;
    Ok(Json(json!({
        "protocol_version": description.protocol_version(),
        "name": description.name(),
        "epoch": description.epoch(),
        "rows": description.rows(),
        "key_column": description.key_column(),
        "key_type": description.key_type().map(|form| form.name()),
        "value_columns": description.value_columns(),
        "records": part_json(&table, PartKind::Records),
        "keys": part_json(&table, PartKind::Keys),
        "salt": description.salt().map(|salt| hex(salt)),
        "seeds": description.is_keyed().then(|| base64(description.seeds())),
        "batches": description.batches().map(|batches| json!({
            "keys": batches.keys,
            "buckets": batches.records.buckets,
            "records": part_json(&table, PartKind::Batches),
            "seeds": base64(&batches.seeds),
        })),
        "changes": description.changes().map(|changes| json!({
            "base_epoch": changes.base_epoch,
            "base_rows": changes.base_rows,
            "records": part_json(&table, PartKind::Changes),
            "salt": hex(&changes.salt),
            "seeds": base64(&changes.seeds),
            "new_keys": part_json(&table, PartKind::NewKeys),
        })),
        "digest": hex(description.digest()),
    })))
}

fn part_json(table: &HostedTable, kind: PartKind) -> JsonValue {
    let Some(part) = table.part(kind) else { return JsonValue::Null };
    let description = &part.description;
    let params = &description.params;
    let Geometry { record_bytes, groups, columns } = params.geometry;
    json!({
        "scheme": params.scheme.to_string(),
        "record_bytes": record_bytes,
        "groups": groups,
        "columns": columns,
        "params_digest": hex(&params.digest()),
        "hint_digest": hex(&description.hint_digest),
        "hint_bytes": description.hint_bytes(),
        "proofs": description.proofs,
        "keys_bytes": params.registered_bytes(),
        "keys_params": params.keys_digest().map(|digest| hex(&digest)),
        "query_bytes": description.query_bytes(),
        "answer_bytes": description.answer_bytes(),
        "queries_per_request": part.most_queries,
    })
}

async fn hint(
    Extract(state): Shared,
    Path((name, part)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    Extension(held): Extension<Arc<MemoryPermit>>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    client
        .may_fetch()
        .and_then(|()| held.take_for_hint(HINT_BUFFERS))
        .and_then(|()| hint_response(&state, &name, &part, query.as_deref(), &headers, client))
        .map_err(|r| state.front.refused(r))
}

fn hint_response(
    state: &State,
    name: &str,
    part: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    client: Arc<Client>,
) -> Result<Response, Refusal> {
    let epoch = match query.and_then(|q| q.split('&').find_map(|pair| pair.strip_prefix("epoch="))) {
        None => None,
        Some(number) => Some(number.parse().map_err(|_| {
            Refusal::new(Reason::Malformed, "epoch is not a number; use the one of the table's description")
        })?),
    };
    let kind = part.parse().ok();
    let (_, _, hosted) = state.part(name, epoch, kind)?;
    let (len, tag) = (hosted.hint.bytes(), format!("\"{}\"", hex(&hosted.description.hint_digest)));
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    // A table that was built again may have the epoch of the one before: browsers ask each time, by its tag.
    let cache = "no-cache";
    let common = [(ETAG, tag.clone()), (ACCEPT_RANGES, "bytes".into()), (CACHE_CONTROL, cache.into())];
    if text(IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|t| t.trim() == tag || t.trim() == "*")) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    let range = text(RANGE).filter(|_| text(IF_RANGE).is_none_or(|t| t == tag));
    let (status, start, end) = match range.and_then(parse_range) {
        None => (StatusCode::OK, 0, len),
        Some((start, last)) if start < len => {
            (StatusCode::PARTIAL_CONTENT, start, last.map_or(len, |last| last.saturating_add(1).min(len)))
        }
        Some((start, _)) => {
            let message = format!("the range starts at {start}, past the {len} B of this hint; start at 0");
            let refusal = Refusal::new(Reason::WrongSize, message);
            let mut response = refusal.with_status(StatusCode::RANGE_NOT_SATISFIABLE).into_response();
            let range = format!("bytes */{len}").parse().expect("is plain text");
            response.headers_mut().insert(CONTENT_RANGE, range);
            return Ok(response);
        }
    };
    let (hint, _) = state.hint(name, epoch, kind, start)?;
    let own =
        [(CONTENT_TYPE, "application/octet-stream".into()), (CONTENT_LENGTH, (end - start).to_string())];
    let pieces = chunks(hint, start..end, client).map(|piece| piece.map_err(|r| r.status()));
    let body = Body::from_stream(tokio_stream::iter(pieces));
    let mut response = (status, common, own, body).into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {start}-{}/{len}", end - 1).parse().expect("is plain text");
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    Ok(response)
}

/// `bytes=N-` or `bytes=N-M`. Anything else is as if it were not there, as RFC 9110, section 14.2, allows.
fn parse_range(range: &str) -> Option<(u64, Option<u64>)> {
    let (start, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let start = start.parse().ok()?;
    match last {
        "" => Some((start, None)),
        last => last.parse().ok().filter(|last| *last >= start).map(|last| (start, Some(last))),
    }
}

async fn keys(
    Extract(state): Shared,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let answer = async {
        let request = read(&state, &headers, body, "RegisterKeysRequest").await?;
        state.register(request, &client).await
    };
    let answer = answer.await.map_err(|r| state.front.refused(r))?;
    Ok(([(CONTENT_TYPE, "application/x-protobuf")], answer.encode_to_vec()).into_response())
}

async fn query(
    Extract(state): Shared,
    Extension(held): Extension<Arc<MemoryPermit>>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let answer = async {
        let request = read(&state, &headers, body, "QueryRequest").await?;
        state.query(request, &held, &client).await
    };
    let answer = answer.await.map_err(|r| state.front.refused(r))?;
    Ok(([(CONTENT_TYPE, "application/x-protobuf")], answer.encode_to_vec()).into_response())
}

/// The message that a body is. What comes of it is paid for as it comes.
async fn read<M: Message + Default>(
    state: &State,
    headers: &HeaderMap,
    body: Body,
    name: &str,
) -> Result<M, Refusal> {
    let limit = state.request_bytes();
    let too_large = |got: &str| {
        let remedy = "send fewer queries in a request";
        Refusal::new(Reason::TooLarge, format!("a body of {got} B is over the limit of {limit} B; {remedy}"))
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok());
    if length.is_some_and(|l| l.parse().is_ok_and(|l: usize| l > limit)) {
        return Err(too_large(length.unwrap_or_default()));
    }
    let body = axum::body::to_bytes(body, limit).await.map_err(|error| {
        Refusal::find(&error).unwrap_or_else(|| {
            if std::error::Error::source(&error).is_some_and(|e| e.is::<http_body_util::LengthLimitError>()) {
                too_large("more")
            } else {
                Refusal::new(Reason::Malformed, "the body broke off; send the request again")
            }
        })
    })?;
    M::decode(body).map_err(|_| {
        let message = format!("the body is not a blindcore.lookup.v1.{name}; encode one with protobuf");
        Refusal::new(Reason::Malformed, message)
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|d| char::from_digit(d.into(), 16).unwrap_or('0'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(parse_range("bytes=5-"), Some((5, None)));
        assert_eq!(parse_range("bytes=5-9"), Some((5, Some(9))));
        for odd in ["bytes=-5", "bytes=9-5", "bytes=1-2,4-5", "lines=1-", "bytes=", "bytes=a-"] {
            assert_eq!(parse_range(odd), None, "{odd}");
        }
        assert_eq!(hex(&[0, 0xab, 0xff]), "00abff");
    }
}
