//! The cluster's metadata: image, metadata log, controller.
