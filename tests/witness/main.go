// Command witnesscheck is what ops/checks/witness needs next to the public programs: keys, an agent that holds one, and a verifier that has nothing
// of ours.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"crypto/sha256"

	"filippo.io/torchwood"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/mod/sumdb/note"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const usage = `witnesscheck key NAME                        prints a new signer key and its verifier key
witnesscheck agent SOCKET                    an SSH agent with a new key, whose fingerprint it prints
witnesscheck know DATABASE VKEY              has litewitness know the log of this verifier key
witnesscheck verify LOG_VKEY WITNESS_VKEY    reads a checkpoint that both signed, and prints its size`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "witnesscheck:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "key":
		signer, verifier, err := note.GenerateKey(rand.Reader, arguments[1])
		if err != nil {
			return err
		}
		fmt.Printf("%s\n%s\n", signer, verifier)
		return nil
	case len(arguments) == 2 && arguments[0] == "agent":
		return serveAgent(arguments[1])
	case len(arguments) == 3 && arguments[0] == "know":
		return know(arguments[1], arguments[2])
	case len(arguments) == 3 && arguments[0] == "verify":
		return verify(arguments[1], arguments[2])
	}
	return errors.New("usage:\n" + usage)
}

func serveAgent(socket string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	fmt.Println(ssh.FingerprintSHA256(signer.PublicKey()))
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go agent.ServeAgent(keys, connection)
	}
}

// know writes what `witnessctl add-log` and `add-key` write.
func know(database, vkey string) error {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return err
	}
	connection, err := sqlite.OpenConn(database, 0)
	if err != nil {
		return err
	}
	defer connection.Close()
	empty := sha256.Sum256(nil)
	log := []any{verifier.Name(), base64.StdEncoding.EncodeToString(empty[:])}
	if err := sqlitex.Execute(connection, "INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)", &sqlitex.ExecOptions{Args: log}); err != nil {
		return err
	}
	key := []any{verifier.Name(), vkey}
	return sqlitex.Execute(connection, "INSERT INTO key (origin, key) VALUES (?, ?)", &sqlitex.ExecOptions{Args: key})
}

func verify(logKey, witnessKey string) error {
	log, err := note.NewVerifier(logKey)
	if err != nil {
		return err
	}
	witness, err := torchwood.NewCosignatureVerifier(witnessKey)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	opened, err := note.Open(text, note.VerifierList(log, witness))
	if err != nil {
		return err
	}
	if len(opened.Sigs) != 2 {
		return fmt.Errorf("%d of 2 signed, others: %d", len(opened.Sigs), len(opened.UnverifiedSigs))
	}
	checkpoint, err := torchwood.ParseCheckpoint(opened.Text)
	if err != nil {
		return err
	}
	if checkpoint.Origin != log.Name() {
		return fmt.Errorf("the origin is %q", checkpoint.Origin)
	}
	fmt.Println(checkpoint.N)
	return nil
}
