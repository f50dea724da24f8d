// Command bench-apply measures server-side apply of one object per client, side by side on the contestants of a
// contestants.json (see the README of the benchmark for its form):
//
//	go run . -contestants ../../../shared/bench/contestants.json -workdir DIR
//
// Each contestant starts fresh. Every client applies its own Deployment of about 2 KiB again and again with one changed
// value, so every apply merges, changes ownership and is committed. Printed: applies per second and the server's CPU
// time per apply, and their ratios to the first contestant.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type contestant struct {
	Name, Prepare, Command, Token, Ready string
	Names                                []string
}

var (
	file    = flag.String("contestants", "contestants.json", "contestants file")
	workdir = flag.String("workdir", os.TempDir(), "folder for state, on a real disk")
	clients = flag.Int("clients", 16, "clients at once, each with an object of its own")
	length  = flag.Duration("t", 10*time.Second, "how long is measured, after a second of warming up")
)

func main() {
	flag.Parse()
	text, err := os.ReadFile(*file)
	check(err)
	var all struct{ Contestants []contestant }
	check(json.Unmarshal(text, &all))
	var rate0, cpu0 float64
	fmt.Printf("%-16s %12s %8s %16s %8s\n", "", "applies/s", "ratio", "CPU us/apply", "ratio")
	for _, it := range all.Contestants {
		rate, cpu := measure(it)
		if rate0 == 0 {
			rate0, cpu0 = rate, cpu
		}
		fmt.Printf("%-16s %12.0f %8.2f %16.0f %8.2f\n", it.Name, rate, rate/rate0, cpu, cpu/cpu0)
	}
}

// measure gives applies per second and microseconds of the server's CPU time per apply.
func measure(it contestant) (float64, float64) {
	state, err := os.MkdirTemp(*workdir, "bench-apply-")
	check(err)
	defer os.RemoveAll(state)
	environment := append(os.Environ(), "STATE_DIR="+state, "TOKEN="+it.Token)
	ports := []string{freePort(), freePort(), freePort()}
	for i, name := range []string{"PORT", "PORT2", "PORT3"} {
		environment = append(environment, name+"="+ports[i])
	}
	shell := func(line string) *exec.Cmd {
		command := exec.Command("sh", "-c", line)
		command.Dir = filepath.Dir(*file)
		command.Env = environment
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return command
	}
	if out, err := shell(it.Prepare).CombinedOutput(); err != nil {
		log.Fatalf("%s: prepare: %v\n%s", it.Name, err, out)
	}
	server := shell(it.Command)
	check(server.Start())
	defer func() {
		syscall.Kill(-server.Process.Pid, syscall.SIGTERM)
		server.Wait()
	}()
	url := "https://127.0.0.1:" + ports[0]
	web := make([]*http.Client, *clients)
	for i := range web {
		web[i] = &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate was made a moment ago, for us
			ForceAttemptHTTP2: true,
		}}
	}
	waitReady(web[0], url+it.Ready, it)

	var group sync.WaitGroup
	counts := make([]int, *clients)
	begin := time.Now().Add(time.Second)
	end := begin.Add(*length)
	for i := range web {
		group.Go(func() {
			for round := 0; time.Now().Before(end); round++ {
				apply(web[i], url, it.Token, i, round)
				if time.Now().After(begin) && time.Now().Before(end) {
					counts[i]++
				}
			}
		})
	}
	time.Sleep(time.Until(begin))
	before := cpuOf(server.Process.Pid, it.Names)
	time.Sleep(time.Until(end))
	used := cpuOf(server.Process.Pid, it.Names) - before
	group.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	return float64(total) / length.Seconds(), float64(used.Microseconds()) / float64(total)
}

func apply(web *http.Client, url, token string, client, round int) {
	name := fmt.Sprintf("apply-%d", client)
	path := url + "/apis/apps/v1/namespaces/default/deployments/" + name + "?fieldManager=bench&force=true"
	request, err := http.NewRequest(http.MethodPatch, path, bytes.NewReader(manifest(name, round)))
	check(err)
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := web.Do(request)
	check(err)
	body, err := io.ReadAll(response.Body)
	check(err)
	response.Body.Close()
	if response.StatusCode/100 != 2 {
		log.Fatalf("apply: %s\n%s", response.Status, body)
	}
}

// manifest is about 2 KiB of JSON, which is YAML too.
func manifest(name string, round int) []byte {
	variables := make([]map[string]string, 12)
	for i := range variables {
		variables[i] = map[string]string{
			"name":  fmt.Sprintf("SETTING_%02d", i),
			"value": fmt.Sprintf("a value of usual length, number %d of this container", i),
		}
	}
	labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench"}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata": map[string]any{
			"name": name, "labels": labels, "annotations": map[string]string{"example.com/round": strconv.Itoa(round)},
		},
		"spec": map[string]any{
			"replicas": 3,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []map[string]any{{
					"name":           "main",
					"image":          "registry.example.com/team/service:1.2.3",
					"ports":          []map[string]any{{"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "metrics"}},
					"env":            variables,
					"resources":      map[string]any{"requests": map[string]string{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]string{"memory": "256Mi"}},
					"livenessProbe":  map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": "http"}},
					"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/ready", "port": "http"}, "periodSeconds": 5},
				}}},
			},
		},
	})
	check(err)
	return text
}

func waitReady(web *http.Client, url string, it contestant) {
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		check(err)
		request.Header.Set("Authorization", "Bearer "+it.Token)
		response, err := web.Do(request)
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
	log.Fatalf("%s was not ready within two minutes", it.Name)
}

// cpuOf is the CPU time of the group's processes of these names.
func cpuOf(group int, names []string) time.Duration {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	check(err)
	var ticks int64
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		open, close := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		// After the name: state, parent, group, …, utime and stime as 12th and 13th.
		fields := strings.Fields(string(text[close+1:]))
		if fields[2] != strconv.Itoa(group) || !contains(names, string(text[open+1:close])) {
			continue
		}
		for _, field := range fields[11:13] {
			count, _ := strconv.ParseInt(field, 10, 64)
			ticks += count
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func contains(names []string, name string) bool {
	for _, it := range names {
		if it == name {
			return true
		}
	}
	return false
}

func freePort() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
