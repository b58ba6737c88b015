// Prints a group's state and lag as kminion finds them: main BOOTSTRAP GROUP.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	log.SetFlags(0)
	bootstrap, group := os.Args[1], os.Args[2]
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	lags, err := admin.Lag(ctx, group)
	if err != nil {
		log.Fatal(err)
	}
	found := lags[group]
	if err := found.Error(); err != nil {
		log.Fatal(err)
	}
	byPartition := map[string]int64{}
	for _, lag := range found.Lag.Sorted() {
		if lag.Err != nil {
			log.Fatal(lag.Err)
		}
		byPartition[strconv.Itoa(int(lag.Partition))] = lag.Lag
	}
	told, err := json.Marshal(map[string]any{
		"state": found.State, "members": len(found.Members), "lag": byPartition,
	})
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(append(told, '\n'))
}
