// Command webhook-pair is the least that two admission webhooks do: /mutate answers the same patch for every pod, and
// /validate says yes. Arguments: its port on the loopback address, the folder of its certificate, the patch.
package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
)

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID string `json:"uid"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	PatchType string `json:"patchType,omitempty"`
	Patch     []byte `json:"patch,omitempty"`
}

func main() {
	port, folder, patch := os.Args[1], os.Args[2], []byte(os.Args[3])
	http.HandleFunc("/mutate", answer(response{Allowed: true, PatchType: "JSONPatch", Patch: patch}))
	http.HandleFunc("/validate", answer(response{Allowed: true}))
	// No HTTP/2: the API server speaks HTTP/1.1 to a webhook behind a Service.
	noHTTP2 := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	server := http.Server{Addr: "127.0.0.1:" + port, TLSNextProto: noHTTP2}
	log.Fatal(server.ListenAndServeTLS(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
}

// answer returns a handler that gives every review the same response.
func answer(with response) http.HandlerFunc {
	return func(writer http.ResponseWriter, asked *http.Request) {
		body, err := io.ReadAll(asked.Body)
		var found review
		if err == nil {
			err = json.Unmarshal(body, &found)
		}
		if err != nil || found.Request == nil {
			http.Error(writer, "not a review", http.StatusBadRequest)
			return
		}
		given := with
		given.UID = found.Request.UID
		writer.Header().Set("Content-Type", "application/json")
		text, _ := json.Marshal(review{APIVersion: found.APIVersion, Kind: found.Kind, Response: &given})
		writer.Write(text)
	}
}
