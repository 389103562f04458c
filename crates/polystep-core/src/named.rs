//! Enums whose variants have names.
//!
//! A name stands in files, flags and tables. It is written once, beside its variant; everything else is made from that list.

use thiserror::Error;

/// A name that is none of the known ones.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("unknown {what} `{found}`: {known}")]
pub struct UnknownName {
    /// What was to be named, e.g. a setting.
    pub what: &'static str,
    /// The text that names nothing.
    pub found: String,
    /// The names there are, as a list for people.
    pub known: String,
}

/// Names as a list for people: `plain, calculator or annotated`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.concat(),
    }
}

/// Names the variants of an enum, in the order of their declaration, and gives it `ALL`, `name`, `listed`, `Display` and `FromStr`.
///
/// ```
/// /// A colour.
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// pub enum Colour {
///     /// The first one.
///     Red,
///     /// The other one.
///     Blue,
/// }
/// polystep_core::named!(Colour, "colour": Red "red", Blue "blue");
///
/// assert_eq!(Colour::ALL.map(Colour::name), ["red", "blue"]);
/// assert_eq!("blue".parse(), Ok(Colour::Blue));
/// assert_eq!("green".parse::<Colour>().unwrap_err().to_string(), "unknown colour `green`: red or blue");
/// ```
/// The names can also stand inside the declaration, behind each variant: `named! { "colour"; pub enum Colour { Red = "red" } }`.
#[macro_export]
macro_rules! named {
    ($what:literal; $(#[$meta:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        $vis enum $type {
            $($(#[$doc])* $variant),+
        }

        $crate::named!($type, $what: $($variant $name),+);
    };
    ($type:ident, $what:literal: $($variant:ident $name:literal),+ $(,)?) => {
        impl $type {
            /// All of them, in the order of their declaration.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// The name in files, flags and tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }

            /// All names as a list for people.
            pub fn listed() -> String {
                $crate::named::listed(&$type::ALL.map($type::name))
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<$type, $crate::UnknownName> {
                let found = $type::ALL.into_iter().find(|one| one.name() == text);
                let (what, known) = ($what, $type::listed());
                found.ok_or_else(|| $crate::UnknownName { what, found: text.to_owned(), known })
            }
        }
    };
}
