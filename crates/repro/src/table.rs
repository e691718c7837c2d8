//! What a paper's reproduction gives.

use serde_json::Value;

/// Figures of ours beside a paper's.
#[derive(Clone, Debug)]
pub struct Table {
    /// Every row, for programs.
    pub document: Value,
    /// The same in Markdown.
    pub text: String,
    /// What is missing, and why: a line each.
    pub notes: Vec<String>,
}
