import { BEARER_ALONE, type CredentialPlace } from '../keys/secret/index.ts';
import { LOOPBACK, Networks } from '../keys/basics/index.ts';
import type { PeopleSettings } from '../keys/authentication/index.ts';
import { type Client, DEFAULT_REFRESH, type RefreshSettings } from '../features/consent/index.ts';
import type { FederationRule } from '../features/federation/index.ts';
import type { NoticeSettings } from '../keys/feed/index.ts';
import type {
  BUILTIN_RESOURCES,
  ConsentMode,
  HostResource,
  Permission,
  PolicyRules,
} from '../keys/permissions/index.ts';
import type { Route, Upstream } from '../features/routes/index.ts';

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

/** How servers that answer without a store follow it by NATS, beside HTTP. */
export interface FeedByNats {
  /** Addresses, as `nats://127.0.0.1:4222` or `tls://nats.example.org`. */
  readonly servers: readonly string[];
  /** The absolute path of a file as `nsc` makes it; undefined where NATS asks for none. */
  readonly credentials: { readonly file: string } | undefined;
  /** The first part of the names of its bucket and subjects. */
  readonly name: string;
}

/** The name where none is given, and the form of one. */
export const NATS_NAME = 'svc-api';
export const NATS_NAME_FORM = /^[A-Za-z0-9_-]{1,100}$/;

/** Whether a text is the address of a server of NATS: secrets stand in the file of the credentials. */
export function isNatsAddress(text: string): boolean {
  if (!/^(?:nats|tls):\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, username, password, pathname, search, hash } = new URL(text);
  return hostname !== '' && username + password + search + hash === '' && ['', '/'].includes(pathname);
}

/** What `svc-api.yaml` says: checked, with defaults for what it omits. */
export interface Config {
  /** The absolute path of the file; undefined if there is none. */
  readonly file: string | undefined;
  /** Resources beside the built-in ones. */
  readonly resources: readonly HostResource[];
  /** The visibility of the built-in ones. */
  readonly builtinResources: (typeof BUILTIN_RESOURCES)[number];
  /** Roles beside the built-in ones. */
  readonly roles: Readonly<Record<string, readonly Permission[]>>;
  /** Default: bearer alone. */
  readonly credentials: readonly CredentialPlace[];
  /** Whose forwarded headers are believed. Default: loopback. */
  readonly trust: Networks;
  /** The services that `guard` passes requests on to, each with a name. */
  readonly upstreams: readonly Upstream[];
  readonly routes: readonly Route[];
  /** What was expected of the routes, and is so. */
  readonly expect: readonly string[];
  /** Origins, such as `https://app.example.org`, whose pages may send requests; `*` for all. */
  readonly cors: { readonly origins: readonly string[] };
  /** Absolute paths. */
  readonly tls: { readonly cert: string; readonly key: string; readonly clientCa?: string } | undefined;
  /** What only tunes a server, from when it starts. */
  readonly server: ServerSettings;
  readonly limits: {
    /** Each as `100/m`; what keys have that name none themselves. */
    readonly default: readonly string[];
    /** Failed credentials of one address, as `20/m`. */
    readonly failedCredentials: string;
  };
  /** What is demanded of all keys. */
  readonly policy: PolicyRules;
  /** Who signs people in without a key, and what they are granted; undefined for nobody. */
  readonly people: PeopleSettings | undefined;
  /** Which tokens of issuers are exchanged for which keys. */
  readonly federation: readonly FederationRule[];
  /** How long entries of the audit log are kept, in milliseconds; null for ever. */
  readonly audit: { readonly keep: number | null };
  /** Who is notified of what happens to keys; undefined for nobody. */
  readonly notices: NoticeSettings | undefined;
  /** Whether GraphQL introspection is answered: always, never, or to keys with PERMISSION:READ_ANY. */
  readonly introspection: 'on' | 'off' | 'permitted';
  /** The address under which clients reach the service; undefined for the one that a request was made to. */
  readonly publicUrl: string | undefined;
  /** How applications may ask for keys; undefined lets `svc-api login` alone, by a code that it shows. */
  readonly consent: ConsentMode | undefined;
  /** Applications that may ask for keys. */
  readonly clients: readonly Client[];
  /** At which hosts applications may describe themselves, at the URLs that are their ids. */
  readonly clientDocuments: 'any' | 'off' | readonly string[];
  /** Whether applications may register themselves. */
  readonly dynamicRegistration: boolean;
  /** How the keys of applications are refreshed. */
  readonly refresh: RefreshSettings;
  /** Whether people sign in to guarded services; undefined for those behind `guard` alone. */
  readonly signIn: 'on' | 'off' | undefined;
  /** By what else than HTTP edges follow; undefined for nothing. */
  readonly feed: { readonly nats: FeedByNats } | undefined;
}

/** What applies where the file says nothing. */
export const DEFAULT_CONFIG: Config = {
  file: undefined,
  resources: [],
  builtinResources: 'shown',
  roles: {},
  credentials: BEARER_ALONE,
  trust: new Networks(LOOPBACK),
  upstreams: [],
  routes: [],
  expect: [],
  cors: { origins: [] },
  tls: undefined,
  server: {},
  limits: { default: [], failedCredentials: '20/m' },
  policy: {},
  people: undefined,
  federation: [],
  audit: { keep: null },
  notices: undefined,
  introspection: 'on',
  publicUrl: undefined,
  consent: undefined,
  clients: [],
  clientDocuments: 'off',
  dynamicRegistration: false,
  refresh: DEFAULT_REFRESH,
  signIn: undefined,
  feed: undefined,
};
