//! `listeners` and what belongs to it (`AbstractKafkaConfig.listeners`, `SocketServerConfigs`).

use std::collections::BTreeMap;

use super::setting::list;

/// An address to listen on, and the one that clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Kafka's name of it, in capitals.
    pub name: String,
    /// Host or address to bind; empty for all addresses of the machine.
    pub host: String,
    /// Port to bind; 0 lets the system choose.
    pub port: u16,
    /// Host that clients are told; empty stands for the machine's own name.
    pub advertised_host: String,
    /// Port that clients are told; 0 stands for the one that was bound.
    pub advertised_port: u16,
}

/// The listeners of one node, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Plaintext listeners for clients; at least one.
    pub clients: Vec<Listener>,
    /// Listeners of the controller. One node binds nothing to them.
    pub controller: Vec<Listener>,
    /// Name of the listener over which brokers would speak with each other.
    pub inter_broker: String,
}

/// The texts from which listeners are read; defaults already filled in.
#[derive(Clone, Copy, Debug)]
pub struct ListenerTexts<'a> {
    /// `listeners`
    pub listeners: &'a str,
    /// `advertised.listeners`
    pub advertised: Option<&'a str>,
    /// `controller.listener.names`
    pub controller_names: &'a str,
    /// `listener.security.protocol.map`
    pub protocols: &'a str,
    /// `inter.broker.listener.name`
    pub inter_broker: Option<&'a str>,
}

/// What is wrong: the setting's name and the reason.
pub type ListenerFault = (&'static str, String);

/// Reads them, or says what is wrong with which setting.
pub fn read(texts: ListenerTexts<'_>) -> Result<Listeners, ListenerFault> {
    let bound = read_list("listeners", texts.listeners)?;
    check_ports(&bound)?;
    let advertised = match texts.advertised {
        Some(text) => read_list("advertised.listeners", text)?,
        None => Vec::new(),
    };
    let controller_names: Vec<String> = list(texts.controller_names)
        .map(str::to_uppercase)
        .collect();
    // Clients are never told the controller's address, whether it is bound or not.
    let advertised: Vec<Address> = advertised
        .into_iter()
        .filter(|told| !controller_names.contains(&told.name))
        .collect();
    check_advertised(&bound, &advertised)?;
    let protocols = read_protocols(texts.protocols)?;
    let mut listeners = Listeners::default();
    for address in bound {
        let told = advertised.iter().find(|told| told.name == address.name);
        let listener = Listener {
            advertised_host: told.map_or(&address.host, |told| &told.host).clone(),
            advertised_port: told.map_or(address.port, |told| told.port),
            name: address.name,
            host: address.host,
            port: address.port,
        };
        if controller_names.contains(&listener.name) {
            listeners.controller.push(listener);
            continue;
        }
        check_protocol(&protocols, &listener.name)?;
        check_told(&listener, told.is_some())?;
        listeners.clients.push(listener);
    }
    let Some(first) = listeners.clients.first() else {
        return Err(("listeners", "No listener for clients".to_owned()));
    };
    listeners.inter_broker = match texts.inter_broker {
        Some(name) => name.to_uppercase(),
        None => first.name.clone(),
    };
    let known = |listener: &Listener| listener.name == listeners.inter_broker;
    if !listeners.clients.iter().any(known) {
        let reason = "Must be the name of one of the listeners for clients".to_owned();
        return Err(("inter.broker.listener.name", reason));
    }
    Ok(listeners)
}

struct Address {
    name: String,
    host: String,
    port: u16,
}

fn read_list(setting: &'static str, text: &str) -> Result<Vec<Address>, ListenerFault> {
    let mut addresses: Vec<Address> = Vec::new();
    for item in list(text) {
        let address = read_address(item).ok_or_else(|| {
            let reason = format!("`{item}` is not of the form NAME://host:port");
            (setting, reason)
        })?;
        if addresses.iter().any(|other| other.name == address.name) {
            return Err((setting, format!("The name {} stands twice", address.name)));
        }
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err((setting, "Names no listener".to_owned()));
    }
    Ok(addresses)
}

fn read_address(text: &str) -> Option<Address> {
    let (name, rest) = text.split_once("://")?;
    let (host, port) = rest.rsplit_once(':')?;
    let host = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host);
    let allowed = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '%' | '.' | '_' | ':')
    };
    if name.is_empty() || !host.chars().all(allowed) {
        return None;
    }
    Some(Address {
        name: name.to_uppercase(),
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

/// Two listeners may share a port only where one is IPv4 and the other IPv6.
fn check_ports(addresses: &[Address]) -> Result<(), ListenerFault> {
    for (place, one) in addresses.iter().enumerate() {
        for other in addresses.iter().skip(place + 1) {
            let families_differ = one.host.contains(':') != other.host.contains(':')
                && !one.host.is_empty()
                && !other.host.is_empty();
            if one.port == other.port && one.port != 0 && !families_differ {
                let reason = format!(
                    "{} and {} have the same port {}",
                    one.name, other.name, one.port
                );
                return Err(("listeners", reason));
            }
        }
    }
    Ok(())
}

fn check_advertised(bound: &[Address], told: &[Address]) -> Result<(), ListenerFault> {
    for address in told {
        if !bound.iter().any(|listener| listener.name == address.name) {
            let reason = format!("{} is not one of the listeners", address.name);
            return Err(("advertised.listeners", reason));
        }
    }
    Ok(())
}

/// An address that means "all of this machine" is of no use to a client on another.
fn check_told(listener: &Listener, is_explicit: bool) -> Result<(), ListenerFault> {
    if matches!(listener.advertised_host.as_str(), "0.0.0.0" | "::") {
        let reason = format!(
            "Clients cannot connect to {}; set advertised.listeners to an address that they reach",
            listener.advertised_host
        );
        let setting = if is_explicit {
            "advertised.listeners"
        } else {
            "listeners"
        };
        return Err((setting, reason));
    }
    Ok(())
}

fn read_protocols(text: &str) -> Result<BTreeMap<String, String>, ListenerFault> {
    let mut protocols = BTreeMap::new();
    for item in list(text) {
        let Some((name, protocol)) = item.rsplit_once(':') else {
            let reason = format!("`{item}` is not of the form NAME:PROTOCOL");
            return Err(("listener.security.protocol.map", reason));
        };
        protocols.insert(name.trim().to_uppercase(), protocol.trim().to_uppercase());
    }
    Ok(protocols)
}

fn check_protocol(protocols: &BTreeMap<String, String>, name: &str) -> Result<(), ListenerFault> {
    match protocols.get(name).map(String::as_str) {
        Some("PLAINTEXT") => Ok(()),
        Some(other) => {
            let reason = format!("{name} is {other}; only PLAINTEXT is served yet");
            Err(("listeners", reason))
        }
        None => {
            let reason = format!("Gives no security protocol for the listener {name}");
            Err(("listener.security.protocol.map", reason))
        }
    }
}
