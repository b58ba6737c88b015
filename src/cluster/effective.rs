//! The broker's settings in force: those of its start, and over them what the metadata log holds.

use std::sync::Arc;

use super::image::{ConfigMap, Image, ResourceType};
use crate::base::config::dynamic::Layers;
use crate::base::config::{BrokerConfig, BrokerTexts};

/// What was given to this broker and to all at run time.
#[derive(Clone, Debug)]
pub struct DynamicConfigs {
    own: Arc<ConfigMap>,
    common: Arc<ConfigMap>,
}

impl DynamicConfigs {
    /// As the image has it.
    #[must_use]
    pub fn of(image: &Image) -> Self {
        let own = image.node_id().0.to_string();
        Self {
            own: image.configs(ResourceType::BROKER, &own),
            common: image.configs(ResourceType::BROKER, ""),
        }
    }

    /// With the settings of the start under them.
    #[must_use]
    pub fn over<'a>(&'a self, fixed: &'a BrokerTexts) -> Layers<'a> {
        Layers {
            own: &self.own,
            common: &self.common,
            fixed,
        }
    }
}

/// The settings in force; those of the start themselves while nothing was changed.
#[must_use]
pub fn config(fixed: &Arc<BrokerConfig>, image: &Image) -> Arc<BrokerConfig> {
    let dynamic = DynamicConfigs::of(image);
    let layers = dynamic.over(&fixed.texts);
    if layers.is_fixed() {
        Arc::clone(fixed)
    } else {
        Arc::new(layers.config(fixed))
    }
}
