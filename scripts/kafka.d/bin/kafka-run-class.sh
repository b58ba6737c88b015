#!/usr/bin/env bash
# Runs a class of Apache Kafka: kafka-run-class.sh CLASS [ARGUMENT...]
# KAFKA_OPTS, KAFKA_HEAP_OPTS and KAFKA_LOG4J_OPTS have Kafka's meaning, EXTRA_CLASSPATH is added
# to the class path, KAFKA_CPUS (a taskset list) pins the process.
set -euo pipefail
home=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
log=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=$home/config/tools-log4j2.properties}
pin=(); [ -n "${KAFKA_CPUS:-}" ] && pin=(taskset -c "$KAFKA_CPUS")
# shellcheck disable=SC2086 # the options are word lists by convention
exec ${pin[@]+"${pin[@]}"} java ${KAFKA_HEAP_OPTS:--Xmx512m} $log ${KAFKA_OPTS:-} \
  -cp "$home/libs/*${EXTRA_CLASSPATH:+:$EXTRA_CLASSPATH}" "$@"
