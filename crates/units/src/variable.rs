//! Variables of the environment: the one place that reads them, for which an empty one is unset.

use std::ffi::OsString;

/// A variable, if it is set and not empty.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The same as text.
///
/// # Errors
/// It is not UTF-8. Its value, which may be a secret, is not said.
pub fn text_variable(name: &str) -> Result<Option<String>, String> {
    let text = variable(name).map(OsString::into_string).transpose();
    text.map_err(|_| format!("{name} is not UTF-8; set it again"))
}

/// Whether a variable is set to nothing, which for blindcore is unset.
#[must_use]
pub fn is_empty_variable(name: &std::ffi::OsStr) -> bool {
    std::env::var_os(name).is_some_and(|value| value.is_empty())
}
