// Prints when CronJobs with these schedules would run, by the library of Kubernetes' CronJob controller:
// a line for each schedule, time zone and beginning, with the ten times after it. `make cron-times` keeps them in src/decide/cron/times.tsv.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

const (
	count  = 10
	layout = "2006-01-02T15:04Z"
)

// Shortly before clocks are put forward and back; the last zone never does that.
var beginnings = []struct{ zone, after string }{
	{"Europe/Berlin", "2026-03-28T20:17Z"},
	{"Europe/Berlin", "2026-10-24T20:17Z"},
	{"America/New_York", "2026-03-08T02:43Z"},
	{"America/New_York", "2026-10-31T22:43Z"},
	{"Asia/Kolkata", "2026-12-30T18:29Z"},
}

func main() {
	schedules := bufio.NewScanner(os.Stdin)
	for schedules.Scan() {
		for _, beginning := range beginnings {
			fmt.Println(row(schedules.Text(), beginning.zone, beginning.after))
		}
	}
	check(schedules.Err())
}

func row(expression, zone, after string) string {
	schedule, err := cron.ParseStandard("TZ=" + zone + " " + expression)
	check(err)
	next, err := time.Parse(layout, after)
	check(err)
	times := make([]string, 0, count)
	for range count {
		next = schedule.Next(next)
		if next.IsZero() {
			break
		}
		times = append(times, next.UTC().Format(layout))
	}
	return strings.Join([]string{expression, zone, after, strings.Join(times, " ")}, "\t")
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
