import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddresses } from './client-address.ts';
import type { Endpoint } from './endpoints.ts';
import { NodeHead } from './node-head.ts';
import { NotedRequest } from './noted-request.ts';
import { keepNotes } from './request-notes.ts';
import { type RequestWatcher, WatchedRequest } from './watched-request.ts';

/** What is to be known of a server for notes on its requests. */
export interface RequestPlaces {
  /** Finds out where requests come from: by the proxies that are trusted now. */
  readonly clients: ClientAddresses;
  endpointOf(incoming: IncomingMessage): Endpoint;
}

/** Begins to take notes on a request that has arrived. */
export type NoteRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Lets each request have an id, and tells those who watch of it. Where nobody does, this costs nothing more. */
export function notingFor(places: RequestPlaces, watchers: readonly RequestWatcher[]): NoteRequest {
  if (watchers.length === 0)
    return (incoming) => keepNotes(incoming, new NotedRequest(new NodeHead(incoming), places.clients));
  return (incoming, outgoing) => {
    const what = { method: incoming.method, endpoint: places.endpointOf(incoming) };
    const request = new WatchedRequest(new NodeHead(incoming), places.clients, what);
    keepNotes(incoming, request);
    for (const watcher of watchers) watcher.began?.(request);
    // It is emitted once; `once` would cost more.
    outgoing.on('close', () => {
      request.endWith(outgoing);
      for (const watcher of watchers) watcher.ended(request);
    });
  };
}
