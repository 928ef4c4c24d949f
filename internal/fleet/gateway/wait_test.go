// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
)

// TestFirstNode: a queue is waited in also where no node fits yet, and ends with what is missing.
func TestFirstNode(t *testing.T) {
	s := newSite(t)
	s.node("other", 1, nil)
	o := gateway.Options{Narrow: true, Queue: time.Millisecond, Labels: map[string]string{"gpu": "yes"}}
	if g, err := gateway.New(t.Context(), s.connect(), o); !errors.Is(err, fleet.ErrNoNode) {
		t.Errorf("%v, %v", g, err)
	}
	o.Queue = time.Hour
	conn, made := s.connect(), make(chan *gateway.Gateway)
	go func() {
		g, err := gateway.New(context.WithoutCancel(t.Context()), conn, o)
		if err != nil {
			t.Error(err)
		}
		made <- g
	}()
	select {
	case g := <-made:
		t.Fatalf("%v is made without a node", g)
	case <-time.After(200 * time.Millisecond):
	}
	s.node("n1", 1, o.Labels)
	g := <-made
	t.Cleanup(func() { _ = g.Shutdown(context.Background()) })
	c := s.client(g, nil)
	if err := c.start("p", "true"); err != nil {
		t.Fatal(err)
	}
	c.await("p")
}

// TestEndedOrLost: what ran on a node that has left and come back has ended; on one that died, it is lost.
func TestEndedOrLost(t *testing.T) {
	for name, want := range map[string]fleet.SessionState{"leaves": fleet.SessionEnded, "dies": fleet.SessionLost} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			n, conn := s.node("n1", 1, nil)
			c := s.client(s.gateway(gateway.Options{}), nil)
			if err := c.start("p", "true"); err != nil {
				t.Fatal(err)
			}
			c.await("p")
			if name == "dies" {
				conn.Close()
			}
			_ = n.Close(context.Background())
			s.node("n1", 1, nil)
			control, err := fleet.NewControl(t.Context(), s.connect())
			if err != nil {
				t.Fatal(err)
			}
			defer control.Close()
			list, err := control.Sessions(t.Context())
			if err != nil || len(list) != 1 || list[0].State != want {
				t.Errorf("%+v, %v; want one that is %s", list, err, want)
			}
		})
	}
}

// TestForgotten: a session that has started nothing is forgotten when its client ends it, or was cut and has not
// come back; one that another gateway has now is not.
func TestForgotten(t *testing.T) {
	s := newSite(t)
	s.node("n1", 1, nil)
	control, err := fleet.NewControl(t.Context(), s.connect())
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	awaits := func(want ...string) {
		t.Helper()
		var got []string
		for range 300 {
			list, err := control.Sessions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, of := range list {
				got = append(got, of.ID)
			}
			if slices.Equal(got, want) {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Fatalf("sessions %q, want %q", got, want)
	}
	first, second := s.gateway(gateway.Options{}), s.gateway(gateway.Options{})
	first.SetAway(500 * time.Millisecond)
	ended, of := s.raw(first, "")
	awaits(of.SessionID)
	_ = ended.stream.Close()
	awaits()
	gone, _ := s.raw(first, "")
	gone.cut()
	awaits()
	moves, of := s.raw(first, "")
	moves.cut()
	_, again := s.raw(second, of.SessionID)
	<-time.After(time.Second)
	awaits(again.SessionID)
}
