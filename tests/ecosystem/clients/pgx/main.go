// Reads connection URIs as pgx does: a JSON list of {uri} on standard input, what was read of each on standard output.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

type asked struct {
	URI string `json:"uri"`
}

type read struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Database string `json:"database"`
	Host     string `json:"host"`
	Port     uint16 `json:"port"`
}

func main() {
	var questions []asked
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		log.Fatal("the input is not a list of URIs")
	}
	answers := []read{}
	for _, question := range questions {
		config, err := pgconn.ParseConfig(question.URI)
		if err != nil {
			log.Fatal("a URI cannot be parsed")
		}
		if len(config.RuntimeParams) > 0 {
			log.Fatal("a part of a URI would be sent to the server as a setting")
		}
		hosts := []string{config.Host}
		for _, next := range config.Fallbacks {
			if next.Port != config.Port {
				log.Fatal("two hosts have two ports")
			}
			hosts = append(hosts, next.Host)
		}
		host := strings.Join(hosts, ",")
		answers = append(answers, read{config.User, config.Password, config.Database, host, config.Port})
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}
