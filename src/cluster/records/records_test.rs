use super::*;
use crate::base::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerId, Uuid,
};

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<u8> = (hex.bytes())
        .filter(|byte| byte.is_ascii_hexdigit())
        .collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect::<Vec<u8>>().into()
}

/// Values of records as Apache Kafka 4.4.0 wrote them, byte for byte.
#[test]
fn records_are_kafkas_to_the_byte() {
    let feature = MetadataRecord::FeatureLevel(FeatureLevelRecord {
        name: "metadata.version".into(),
        feature_level: 33,
    });
    let config = MetadataRecord::Config(ConfigRecord {
        resource_type: 4,
        resource_name: String::new(),
        name: "min.insync.replicas".into(),
        value: Some("1".into()),
    });
    let unfenced = MetadataRecord::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(11),
        fenced: -1,
        ..BrokerRegistrationChangeRecord::default()
    });
    let cordoned = MetadataRecord::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(11),
        cordoned_log_dirs: Some(Vec::new()),
        ..BrokerRegistrationChangeRecord::default()
    });
    let begin = MetadataRecord::BeginTransaction(BeginTransactionRecord {
        name: Some("Bootstrap records".into()),
    });
    let cases = [
        (
            feature,
            "01 0c 00 11 6d65746164617461 2e 76657273696f6e 0021 00",
        ),
        (
            config,
            "01 04 00 04 01 14 6d696e2e696e73796e632e7265706c69636173 02 31 00",
        ),
        (unfenced, "01 11 00 00000001 000000000000000b 01 00 01 ff"),
        (cordoned, "01 11 03 00000001 000000000000000b 01 03 01 01"),
        (
            begin,
            "01 17 00 01 00 12 12 426f6f747374726170207265636f726473",
        ),
        (MetadataRecord::NoOp(NoOpRecord {}), "01 14 00 00"),
        (
            MetadataRecord::EndTransaction(EndTransactionRecord {}),
            "01 18 00 00",
        ),
    ];
    for (record, hex) in cases {
        let expected = bytes(hex);
        assert_eq!(record.encode().unwrap(), expected, "{record:?}");
        assert_eq!(MetadataRecord::decode(expected).unwrap(), record);
    }
}

#[test]
fn every_kind_comes_back_as_it_went() {
    let id = Uuid([7; 16]);
    let partition = PartitionRecord {
        partition_id: PartitionIndex(3),
        topic_id: id,
        replicas: vec![BrokerId(1), BrokerId(2)],
        isr: vec![BrokerId(1)],
        leader: BrokerId(1),
        leader_epoch: LeaderEpoch(4),
        partition_epoch: 5,
        ..PartitionRecord::default()
    };
    let with_directories = PartitionRecord {
        directories: vec![id],
        leader_recovery_state: 1,
        ..partition.clone()
    };
    let with_elr = PartitionRecord {
        eligible_leader_replicas: Some(vec![BrokerId(2)]),
        last_known_elr: Some(Vec::new()),
        ..with_directories.clone()
    };
    let change = PartitionChangeRecord {
        partition_id: PartitionIndex(3),
        topic_id: id,
        isr: Some(Vec::new()),
        leader: BrokerId(-1),
        directories: Some(vec![id]),
        eligible_leader_replicas: Some(vec![BrokerId(1)]),
        ..PartitionChangeRecord::default()
    };
    let register = RegisterBrokerRecord {
        broker_id: BrokerId(1),
        incarnation_id: id,
        broker_epoch: BrokerEpoch(Offset(9).0),
        end_points: vec![BrokerEndpoint {
            name: "PLAINTEXT".into(),
            host: "h".into(),
            port: 65_535,
            security_protocol: 0,
        }],
        rack: Some("r".into()),
        log_dirs: vec![id],
        ..RegisterBrokerRecord::default()
    };
    let ids = ProducerIdsRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(9),
        next_producer_id: ProducerId(1_000),
    };
    for record in [
        MetadataRecord::Partition(partition),
        MetadataRecord::Partition(with_directories),
        MetadataRecord::Partition(with_elr),
        MetadataRecord::PartitionChange(change),
        MetadataRecord::PartitionChange(PartitionChangeRecord::default()),
        MetadataRecord::RegisterBroker(register),
        MetadataRecord::RegisterBroker(RegisterBrokerRecord::default()),
        MetadataRecord::ProducerIds(ids),
        MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: id }),
        MetadataRecord::ClearElr(ClearElrRecord {
            topic_name: "t".into(),
        }),
    ] {
        let encoded = record.encode().unwrap();
        assert_eq!(MetadataRecord::decode(encoded).unwrap(), record);
    }
}

#[test]
fn what_is_not_known_is_told_apart_from_what_is_broken() {
    // An access control entry: of use to authorisation, which does not exist here.
    let framed = bytes("01 12 00 ff ff");
    let foreign = MetadataRecord::decode(framed.clone()).unwrap();
    assert_eq!(foreign.encode().unwrap(), framed);
    let expected = ForeignRecord {
        kind: 18,
        bytes: framed,
    };
    assert_eq!(foreign, MetadataRecord::Foreign(expected));
    let fault = |hex: &str| MetadataRecord::decode(bytes(hex)).unwrap_err();
    assert!(matches!(fault("02 02 00"), RecordError::FrameVersion(2)));
    assert!(matches!(
        fault("01 02 01 00"),
        RecordError::Version {
            kind: 2,
            version: 1
        }
    ));
    for broken in [
        "",
        "01",
        "01 02",
        "01 02 00",
        "01 02 00 05 61",
        "01 14 00 00 00",
    ] {
        assert!(matches!(fault(broken), RecordError::Decode(_)), "{broken}");
    }
}
