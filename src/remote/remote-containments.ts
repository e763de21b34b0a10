import type { Contained, ContainmentOperations, ContainRequest } from '../keys/changes/operator-containments.ts';
import { formatTime, requirePastTime } from '../keys/time.ts';
import type { ServerConnection } from './connection.ts';
import { CONTAIN } from './documents.ts';
import { readContained } from './read-changes.ts';

/** What commands do to undo what the keys of a running server did. */
export class RemoteContainments implements ContainmentOperations {
  readonly #connection: ServerConnection;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  planContainment(request: ContainRequest): Promise<Contained> {
    return this.#contain(request, true);
  }

  contain(request: ContainRequest): Promise<Contained> {
    return this.#contain(request, false);
  }

  #contain({ key, since }: ContainRequest, dryRun: boolean): Promise<Contained> {
    const from = since === undefined ? undefined : formatTime(requirePastTime(since, Date.now()));
    const variables = { input: { name: key, since: from, dryRun } };
    return this.#connection.ask({ document: CONTAIN, variables, read: ({ containKey }) => readContained(containKey) });
  }
}
