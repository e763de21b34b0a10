/** What only tunes a server, each undefined for its default. */
export interface ServerSettings {
  /** How long a connection is kept for a further request, in seconds. */
  readonly keepAlive?: number | undefined;
  /** How many connections each process has at a time. */
  readonly maxConnections?: number | undefined;
  /** How many of its connections come from one address, or one /64 of IPv6. */
  readonly maxConnectionsPerAddress?: number | undefined;
  /** How many accepted secrets each process remembers. */
  readonly maxVerifiedKeys?: number | undefined;
  /** The address at which metrics are served. */
  readonly metricsHost?: string | undefined;
}

/** The settings of a server that are numbers from 1 on, and how much each is at most. */
export const SERVER_NUMBERS = {
  keepAlive: 3600,
  maxConnections: 1_000_000,
  maxConnectionsPerAddress: 1_000_000,
  maxVerifiedKeys: 1_000_000,
} as const satisfies Partial<Record<keyof ServerSettings, number>>;

/** Whether a value is a whole number from 1 to so many. */
export function isCount(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most;
}
