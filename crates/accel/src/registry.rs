//! Devices by name.

use std::sync::Arc;

use crate::{Device, Error, Operation};

/// How a device is opened, whatever its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Threads that a device on the host may use; at least 1.
    pub threads: usize,
}

impl Default for OpenOptions {
    /// All cores of the process.
    fn default() -> Self {
        Self { threads: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// A device that a [`DeviceKind`] knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name that opens it.
    pub name: String,
    /// Whether it can be opened here; else what is missing, in a sentence.
    pub available: Result<(), String>,
}

/// A kind of devices, such as the CPU's or a GPU's: what a [`Registry`] is made of.
pub trait DeviceKind: Send + Sync {
    /// What its names are or begin with, before a colon: `cpu` for `cpu` and `cpu:portable`.
    fn prefix(&self) -> &'static str;

    /// The names that open one, whether or not it is on this machine.
    fn names(&self) -> Vec<String>;

    /// Its devices, and whether each can be opened here. It may take as long as opening them.
    fn list(&self) -> Vec<Listed>;

    /// Opens the device of one of its names.
    ///
    /// # Errors
    /// [`Error::Device`]: what this machine lacks for it.
    fn open(&self, name: &str, options: &OpenOptions) -> Result<Device, Error>;

    /// What makes the device of one of its names available here, if something does: a library to build, a driver to
    /// install.
    fn remedy(&self, _name: &str) -> Option<String> {
        None
    }

    /// The error with that remedy, if it says that a device can't be opened and has no remedy yet. A registry does it; who
    /// opens a device past the registry does it too.
    fn explain(&self, error: Error) -> Error {
        match error {
            Error::Device { name, why, remedy: None } => {
                let remedy = self.remedy(&name);
                Error::Device { name, why, remedy }
            }
            other => other,
        }
    }

    /// The name that `auto` opens if no kind before this one has any: none for devices that must be asked for, as
    /// simulated ones.
    fn automatic(&self) -> Option<String> {
        None
    }
}

/// The kinds of devices that a program has, and the way to open one by name.
///
/// | name | what it opens |
/// |---|---|
/// | `auto` | what the first kind that has a proposal proposes; nothing else ever chooses |
/// | `cpu:portable` | exactly that device |
/// | `rtl:phepu+contract=cpu` | the first with the second's slot: [`Device::with`] |
#[derive(Clone, Default)]
pub struct Registry {
    kinds: Vec<Arc<dyn DeviceKind>>,
    absent: Vec<(&'static str, &'static str)>,
}

impl Registry {
    /// With no kind.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more kind. `auto` asks those that were added first first.
    #[must_use]
    pub fn with(mut self, kind: impl DeviceKind + 'static) -> Self {
        self.kinds.push(Arc::new(kind));
        self
    }

    /// Tells that devices of this prefix exist, and that this program was built without the cargo feature that adds them.
    #[must_use]
    pub fn without(mut self, prefix: &'static str, feature: &'static str) -> Self {
        self.absent.push((prefix, feature));
        self
    }

    /// Every name that opens a device, `auto` first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let auto = self.automatic().map(|_| "auto".to_owned());
        auto.into_iter().chain(self.kinds.iter().flat_map(|kind| kind.names())).collect()
    }

    /// Every device, and whether each can be opened here.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        self.kinds.iter().flat_map(|kind| kind.list()).collect()
    }

    /// What `auto` opens: the proposal of the first kind that has one.
    #[must_use]
    pub fn automatic(&self) -> Option<String> {
        self.kinds.iter().find_map(|kind| kind.automatic())
    }

    /// Opens a device by name. Only `auto` chooses.
    ///
    /// # Errors
    /// [`Error::Device`]: no device has this name, and these are nearest; or it needs a feature that is not compiled
    /// in; or what this machine lacks for it. [`Error::Unsupported`]: a composed name asks a device for a slot that it
    /// hasn't.
    pub fn open(&self, name: &str, options: &OpenOptions) -> Result<Device, Error> {
        let mut parts = name.split('+');
        let mut device = self.open_one(parts.next().unwrap_or_default(), options)?;
        for part in parts {
            let slot = part.split_once('=').and_then(|(slot, other)| {
                Some((Operation::ALL.into_iter().find(|operation| operation.name() == slot)?, other))
            });
            let Some((operation, other)) = slot else {
                let slots = Operation::ALL.map(Operation::name).join(", ");
                return Err(Error::Device {
                    name: name.into(),
                    why: format!("{part:?} does not say which slot to take from which device"),
                    remedy: Some(format!("write +SLOT=DEVICE with one of {slots}")),
                });
            };
            device = device.with(operation, &self.open_one(other, options)?)?;
        }
        Ok(device)
    }

    fn open_one(&self, name: &str, options: &OpenOptions) -> Result<Device, Error> {
        let automatic = self.automatic();
        let name = automatic.as_deref().filter(|_| name == "auto").unwrap_or(name);
        if let Some(kind) = self.kinds.iter().find(|kind| kind.names().iter().any(|n| n == name)) {
            return kind.open(name, options).map_err(|error| match (kind.explain(error), automatic) {
                (Error::Device { name, why, remedy: None }, Some(other)) if name != other => {
                    let remedy = Some(format!("use {other}"));
                    Error::Device { name, why, remedy }
                }
                (error, _) => error,
            });
        }
        let prefix = name.split_once(':').map_or(name, |(prefix, _)| prefix);
        let refuse = |why: String, remedy| Error::Device { name: name.into(), why, remedy: Some(remedy) };
        if let Some((_, feature)) = self.absent.iter().find(|(absent, _)| *absent == prefix) {
            let why = format!("this program was built without {prefix} devices");
            return Err(refuse(why, format!("build it with the feature {feature}")));
        }
        let names = self.names();
        let nearest = nearest(name, &names);
        let remedy = match nearest.is_empty() {
            true => format!("use one of {}", names.join(", ")),
            false => format!("did you mean {}? All names: {}", nearest.join(" or "), names.join(", ")),
        };
        Err(refuse("no device has this name".into(), remedy))
    }
}

/// The names that are fewest edits away from a wrong one, if they are few enough for a slip.
fn nearest<'a>(wrong: &str, names: &'a [String]) -> Vec<&'a str> {
    let most = (wrong.chars().count() / 3).clamp(1, 4);
    let distance = |name: &String| strsim::damerau_levenshtein(wrong, name);
    let Some(least) = names.iter().map(distance).min().filter(|least| *least <= most) else {
        return Vec::new();
    };
    names.iter().filter(|name| distance(name) == least).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Description, Slots};

    /// Devices with no slots at all.
    struct Empty(&'static str, &'static [&'static str], bool);

    impl DeviceKind for Empty {
        fn prefix(&self) -> &'static str {
            self.0
        }

        fn names(&self) -> Vec<String> {
            self.1.iter().map(|name| (*name).to_owned()).collect()
        }

        fn list(&self) -> Vec<Listed> {
            self.names().into_iter().map(|name| Listed { name, available: Ok(()) }).collect()
        }

        fn open(&self, name: &str, options: &OpenOptions) -> Result<Device, Error> {
            if name.ends_with("absent") {
                return Err(Error::device(name, "it is absent"));
            }
            let (name, threads) = (name.to_owned(), options.threads);
            let description = Description { name, hardware: "none".into(), threads, why: "a test".into() };
            Ok(Device::new(description, Slots::default()))
        }

        fn automatic(&self) -> Option<String> {
            self.2.then(|| self.1[0].to_owned())
        }

        fn remedy(&self, name: &str) -> Option<String> {
            (!self.2).then(|| format!("plug {name} in"))
        }
    }

    fn registry() -> Registry {
        Registry::new()
            .with(Empty("sim", &["sim:onion", "sim:phe", "sim:absent"], false))
            .with(Empty("big", &["big", "big:fast", "big:slow", "big:absent"], true))
            .without("gone", "gone-devices")
    }

    fn refused(name: &str) -> String {
        registry().open(name, &OpenOptions { threads: 1 }).err().expect("refused").to_string()
    }

    #[test]
    fn names_open_exactly_what_they_say_and_auto_alone_chooses() {
        let options = OpenOptions { threads: 3 };
        assert_eq!(registry().open("auto", &options).unwrap().name(), "big");
        assert_eq!(registry().open("sim:phe", &options).unwrap().name(), "sim:phe");
        assert_eq!(registry().open("sim:phe", &options).unwrap().description().threads, 3);
        assert_eq!(
            registry().names(),
            ["auto", "sim:onion", "sim:phe", "sim:absent", "big", "big:fast", "big:slow", "big:absent"]
        );
        assert!(Registry::new().open("auto", &options).is_err());
    }

    #[test]
    fn a_nearly_right_name_is_answered_with_the_nearest() {
        assert!(refused("sim:peh").contains("did you mean sim:phe?"));
        assert!(refused("big:fats").contains("did you mean big:fast?"));
        assert!(refused("quantum").contains("use one of auto, sim:onion"));
        assert!(refused("").contains("use one of auto"));
        assert!(refused("gone:0").contains("build it with the feature gone-devices"));
    }

    #[test]
    fn a_remedy_is_the_kinds_or_the_registrys() {
        assert_eq!(
            refused("sim:absent"),
            "device \"sim:absent\" can't be opened: it is absent; plug sim:absent in"
        );
        assert!(refused("big:absent").ends_with("it is absent; use big"));
        let alone = Registry::new().with(Empty("big", &["absent"], true));
        let error = alone.open("auto", &OpenOptions { threads: 1 }).err().expect("refused").to_string();
        assert!(error.ends_with("it is absent"), "{error}");
    }

    #[test]
    fn slots_that_are_empty_are_not_lent() {
        assert_eq!(refused("big+bigmod=sim:phe"), "device \"sim:phe\" does not do bigmod");
        assert!(refused("big+sim:phe").contains("+SLOT=DEVICE"));
        assert!(refused("big+song=sim:phe").contains("contract, transform"));
    }
}
