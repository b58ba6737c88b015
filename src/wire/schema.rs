//! The `message!` macro, in which a schema is written as the Rust struct it becomes.
//!
//! ```text
//! message! {
//!     /// What it is.
//!     pub struct Name(api_key 3, versions 0..=13, flexible 9) {
//!         field: Type => 0..;
//!         other: Option<Type> => 4..=11, nullable 7.., tag 0, ignorable, default Some(1);
//!     }
//!     pub struct Nested { .. }
//! }
//! ```
//!
//! After `=>` stand the versions that carry the field, then, in this order and each optional: the
//! versions in which it may be null, its tag, whether a version that cannot carry it may leave it
//! out (`ignorable`, as in Kafka's schemas), and its default when that is not the type's own. A
//! tagged field is written only when it differs from its default, and tags must rise.
//! In place of `api_key` stand `record_type` for a record of the metadata log and `data` for a
//! message that carries no number of its own; a nested struct has nothing.

/// Whether the tags that are there rise; checked when a schema is compiled.
pub(crate) const fn tags_rise(tags: &[Option<u32>]) -> bool {
    let mut last: i64 = -1;
    let mut rest = tags;
    while let [first, others @ ..] = rest {
        if let Some(tag) = first {
            if *tag as i64 <= last {
                return false;
            }
            last = *tag as i64;
        }
        rest = others;
    }
    true
}

/// See the head of the module.
macro_rules! message {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident
            $(($kind:ident $($number:literal)?, versions $versions:expr
                $(, flexible $flexible:literal)?))?
        {$(
            $(#[$field_meta:meta])*
            $field:ident: $type:ty => $carried:expr
                $(, nullable $nullable:expr)?
                $(, tag $tag:literal)?
                $(, ignorable $($ignorable:lifetime)?)?
                $(, default $default:expr)?;
        )*}
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {$(
            $(#[$field_meta])*
            pub $field: $type,
        )*}

        impl Default for $name {
            fn default() -> Self {
                Self {$(
                    $field: $crate::wire::schema::default_value!($($default)?),
                )*}
            }
        }

        $($crate::wire::schema::message_kind! {
            $name, $kind $($number)?, $versions,
            $crate::wire::schema::option!($($flexible)?)
        })?

        const _: () = assert!(
            $crate::wire::schema::tags_rise(&[$($crate::wire::schema::option!($($tag)?)),*]),
            "tags must rise"
        );

        #[allow(unused_mut, unused_variables, clippy::redundant_closure_call)]
        impl $crate::wire::primitives::WireType for $name {
            fn bytes_min(version: $crate::wire::primitives::Version) -> usize {
                let mut bytes = usize::from(version.flexible);
                $(
                    let tag: Option<u32> = $crate::wire::schema::option!($($tag)?);
                    if tag.is_none() && ($carried).contains(&version.number) {
                        bytes += $crate::wire::schema::field_bytes_min!(
                            version, $type $(, $nullable)?
                        );
                    }
                )*
                bytes
            }

            fn read(
                reader: &mut $crate::wire::primitives::Reader,
                version: $crate::wire::primitives::Version,
            ) -> Result<Self, $crate::wire::primitives::DecodeError> {
                // Fields are read in the order in which they are written here.
                let mut value = Self {$(
                    $field: {
                        let tag: Option<u32> = $crate::wire::schema::option!($($tag)?);
                        if tag.is_none() && ($carried).contains(&version.number) {
                            $crate::wire::schema::read_field!(
                                reader, version, $type $(, $nullable)?
                            )?
                        } else {
                            $crate::wire::schema::default_value!($($default)?)
                        }
                    },
                )*};
                if version.flexible {
                    reader.tagged_fields(|reader, tag| {
                        $(
                            if $crate::wire::schema::option!($($tag)?) == Some(tag)
                                && ($carried).contains(&version.number)
                            {
                                value.$field = $crate::wire::schema::read_field!(
                                    reader, version, $type $(, $nullable)?
                                )?;
                                return Ok(true);
                            }
                        )*
                        Ok(false)
                    })?;
                }
                Ok(value)
            }

            fn write(
                &self,
                writer: &mut $crate::wire::primitives::Writer,
                version: $crate::wire::primitives::Version,
            ) -> Result<(), $crate::wire::primitives::EncodeError> {
                let mut tagged_count = 0u32;
                $(
                    let is_carried = ($carried).contains(&version.number);
                    let tag: Option<u32> = $crate::wire::schema::option!($($tag)?);
                    let may_drop = $crate::wire::schema::flag!($(ignorable $($ignorable)?)?);
                    if is_carried && tag.is_none() {
                        $crate::wire::schema::write_field!(
                            self, $name, $field, writer, version $(, $nullable)?
                        )?;
                    } else if is_carried || !may_drop {
                        let default: $type =
                            $crate::wire::schema::default_value!($($default)?);
                        if self.$field != default {
                            if !is_carried {
                                return Err(
                                    $crate::wire::primitives::EncodeError::FieldNotInVersion {
                                        field: concat!(
                                            stringify!($name), ".", stringify!($field)
                                        ),
                                        version: version.number,
                                    },
                                );
                            }
                            tagged_count += 1;
                        }
                    }
                )*
                if !version.flexible {
                    return Ok(());
                }
                writer.put_unsigned_varint(tagged_count);
                if tagged_count == 0 {
                    return Ok(());
                }
                $(
                    let tag: Option<u32> = $crate::wire::schema::option!($($tag)?);
                    if let Some(tag) = tag
                        && ($carried).contains(&version.number)
                    {
                        let default: $type =
                            $crate::wire::schema::default_value!($($default)?);
                        if self.$field != default {
                            writer.put_tagged(tag, |writer| {
                                $crate::wire::schema::write_field!(
                                    self, $name, $field, writer, version $(, $nullable)?
                                )
                            })?;
                        }
                    }
                )*
                Ok(())
            }

            #[allow(unreachable_code)]
            fn throttle_time_ms(&mut self) -> Option<&mut i32> {
                $($crate::wire::schema::throttle_field!(self, $field);)*
                None
            }
        }

        #[cfg(any(test, feature = "sim"))]
        #[allow(unused_mut, unused_variables)]
        impl $crate::wire::sample::Sample for $name {
            fn sample(
                random: &mut $crate::base::random::Random,
                version: $crate::wire::primitives::Version,
            ) -> Self {
                let mut value = Self::default();
                $(
                    let tag: Option<u32> = $crate::wire::schema::option!($($tag)?);
                    let is_carried = ($carried).contains(&version.number);
                    if is_carried && (tag.is_none() || random.chance(1, 2)) {
                        value.$field = $crate::wire::schema::sample_field!(
                            random, version, $type $(, $nullable)?
                        );
                    }
                )*
                value
            }
        }

        impl $crate::wire::primitives::NullableWireType for $name {
            /// A null is one byte -1; a value has 1 before it (KIP-893).
            fn nullable_bytes_min(_version: $crate::wire::primitives::Version) -> usize {
                1
            }

            fn read_nullable(
                reader: &mut $crate::wire::primitives::Reader,
                version: $crate::wire::primitives::Version,
            ) -> Result<Option<Self>, $crate::wire::primitives::DecodeError> {
                let [marker] = reader.array()?;
                if (marker as i8) < 0 {
                    return Ok(None);
                }
                $crate::wire::primitives::WireType::read(reader, version).map(Some)
            }

            fn write_nullable(
                value: Option<&Self>,
                writer: &mut $crate::wire::primitives::Writer,
                version: $crate::wire::primitives::Version,
            ) -> Result<(), $crate::wire::primitives::EncodeError> {
                let marker = if value.is_some() { 1i8 } else { -1 };
                writer.put(&marker.to_be_bytes());
                match value {
                    Some(value) => {
                        $crate::wire::primitives::WireType::write(value, writer, version)
                    }
                    None => Ok(()),
                }
            }
        }
    )*};
}

macro_rules! message_kind {
    ($name:ident, api_key $number:literal, $versions:expr, $flexible:expr) => {
        impl $crate::wire::codec::Message for $name {
            const API_KEY: $crate::base::ids::ApiKey = $crate::base::ids::ApiKey($number);
            const VERSIONS: std::ops::RangeInclusive<i16> = $versions;
            const FLEXIBLE_FROM: Option<i16> = $flexible;
        }
    };
    ($name:ident, record_type $number:literal, $versions:expr, $flexible:expr) => {
        impl $crate::wire::codec::RecordMessage for $name {
            const TYPE: u32 = $number;
            const VERSIONS: std::ops::RangeInclusive<i16> = $versions;
            const FLEXIBLE_FROM: Option<i16> = $flexible;
        }
    };
    ($name:ident, data, $versions:expr, $flexible:expr) => {
        impl $crate::wire::codec::DataMessage for $name {
            const VERSIONS: std::ops::RangeInclusive<i16> = $versions;
            const FLEXIBLE_FROM: Option<i16> = $flexible;
        }
    };
}

macro_rules! default_value {
    () => {
        Default::default()
    };
    ($value:expr) => {
        $value
    };
}

/// Ends a function with the field that tells how long a client is throttled; nothing for others.
macro_rules! throttle_field {
    ($value:ident, throttle_time_ms) => {
        return Some(&mut $value.throttle_time_ms)
    };
    ($value:ident, $other:ident) => {};
}

macro_rules! option {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

macro_rules! flag {
    () => {
        false
    };
    (ignorable) => {
        true
    };
}

macro_rules! field_bytes_min {
    ($version:ident, $type:ty) => {
        <$type as $crate::wire::primitives::WireType>::bytes_min($version)
    };
    ($version:ident, $type:ty, $nullable:expr) => {
        <$type as $crate::wire::codec::NullableField>::bytes_min(
            $version,
            ($nullable).contains(&$version.number),
        )
    };
}

macro_rules! read_field {
    ($reader:ident, $version:ident, $type:ty) => {
        <$type as $crate::wire::primitives::WireType>::read($reader, $version)
    };
    ($reader:ident, $version:ident, $type:ty, $nullable:expr) => {
        <$type as $crate::wire::codec::NullableField>::read(
            $reader,
            $version,
            ($nullable).contains(&$version.number),
        )
    };
}

macro_rules! write_field {
    ($self:ident, $name:ident, $field:ident, $writer:ident, $version:ident) => {
        $crate::wire::primitives::WireType::write(&$self.$field, $writer, $version)
    };
    ($self:ident, $name:ident, $field:ident, $writer:ident, $version:ident, $nullable:expr) => {
        if ($nullable).contains(&$version.number) {
            $crate::wire::primitives::NullableWireType::write_nullable(
                $self.$field.as_ref(),
                $writer,
                $version,
            )
        } else {
            match &$self.$field {
                Some(value) => $crate::wire::primitives::WireType::write(value, $writer, $version),
                None => Err($crate::wire::primitives::EncodeError::UnexpectedNull {
                    field: concat!(stringify!($name), ".", stringify!($field)),
                    version: $version.number,
                }),
            }
        }
    };
}

#[cfg(any(test, feature = "sim"))]
macro_rules! sample_field {
    ($random:ident, $version:ident, $type:ty) => {
        <$type as $crate::wire::sample::Sample>::sample($random, $version)
    };
    ($random:ident, $version:ident, $type:ty, $nullable:expr) => {
        <$type as $crate::wire::sample::SampleNullable>::sample(
            $random,
            $version,
            ($nullable).contains(&$version.number),
        )
    };
}

#[cfg(any(test, feature = "sim"))]
pub(crate) use sample_field;
pub(crate) use {
    default_value, field_bytes_min, flag, message, message_kind, option, read_field,
    throttle_field, write_field,
};
