// Prints what tools make of objects: the status of kstatus, by its own library, and the health of Argo CD, by the Lua scripts of
// a ConfigMap in the interpreter that Argo CD has in it.
//
// The argument is the ConfigMap argocd-cm as a JSON file. Objects are read from standard input, one JSON object a line, and each
// is answered with one line: {"kstatus": "Current", "health": "Healthy", "message": "The compute can be used."}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	luajson "layeh.com/gopher-json"
)

// How long Argo CD lets a script run.
const scriptLimit = time.Second

// What the API server stores at most in one object, and more.
const longestLine = 4 << 20

type verdict struct {
	Kstatus string `json:"kstatus"`
	Health  string `json:"health"`
	Message string `json:"message"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string, objects io.Reader, verdicts io.Writer) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: status ARGOCD_CM.json < objects > verdicts")
	}
	scripts, err := readScripts(arguments[0])
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(objects)
	lines.Buffer(nil, longestLine)
	printed := json.NewEncoder(verdicts)
	for lines.Scan() {
		found, err := judge(lines.Bytes(), scripts)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, lines.Bytes())
		}
		if err := printed.Encode(found); err != nil {
			return err
		}
	}
	return lines.Err()
}

// readScripts returns the data of the ConfigMap.
func readScripts(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(text, &configMap); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return configMap.Data, nil
}

func judge(line []byte, scripts map[string]string) (verdict, error) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(line); err != nil {
		return verdict{}, err
	}
	computed, err := status.Compute(&object)
	if err != nil {
		return verdict{}, fmt.Errorf("kstatus: %w", err)
	}
	key := scriptKey(object.GroupVersionKind())
	script, ok := scripts[key]
	if !ok {
		return verdict{}, fmt.Errorf("the ConfigMap has no %s", key)
	}
	health, message, err := runScript(script, line)
	if err != nil {
		return verdict{}, fmt.Errorf("%s: %w", key, err)
	}
	return verdict{Kstatus: computed.Status.String(), Health: health, Message: message}, nil
}

// scriptKey returns where Argo CD looks for the health check of a kind.
func scriptKey(kind schema.GroupVersionKind) string {
	return fmt.Sprintf("resource.customizations.health.%s_%s", kind.Group, kind.Kind)
}

// runScript runs a health check as Argo CD does: with the object in the variable obj, with a limit of time, and with these
// libraries alone. (Argo CD adds a part of the library os, which a check that gives the same result each time does not need.)
func runScript(script string, object []byte) (health, message string, err error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		call := lua.P{Fn: state.NewFunction(library.open), Protect: true}
		if err := state.CallByParam(call, lua.LString(library.name)); err != nil {
			return "", "", err
		}
	}
	limited, cancel := context.WithTimeout(context.Background(), scriptLimit)
	defer cancel()
	state.SetContext(limited)
	value, err := luajson.Decode(state, object)
	if err != nil {
		return "", "", err
	}
	state.SetGlobal("obj", value)
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("the script returns %s, not a table", state.Get(-1).Type())
	}
	words := [2]string{}
	for place, field := range []string{"status", "message"} {
		word, ok := result.RawGetString(field).(lua.LString)
		if !ok {
			return "", "", fmt.Errorf("the script returns no text as %s", field)
		}
		words[place] = string(word)
	}
	return words[0], words[1], nil
}
