import type { Context, Hono } from 'hono';
import type { BearerEnv } from '../http/bearer-auth.ts';
import { rootFrom, type Visit } from './visit.tsx';

/** Makes the answer to somebody who has signed in. */
export type VisitHandler = (visit: Visit) => Promise<Response>;

/** Lets somebody in, and answers them. */
export type Welcome = (c: Context, root: string, answer: VisitHandler) => Promise<Response>;

/** Takes the pages of the console. Addresses are under `/console/`, such as `keys/:id`. */
export class Pages {
  readonly #app: Hono<BearerEnv>;
  readonly #path: string;
  readonly #welcome: Welcome;

  constructor(app: Hono<BearerEnv>, path: string, welcome: Welcome) {
    this.#app = app;
    this.#path = path;
    this.#welcome = welcome;
  }

  /** A page. */
  get(path: string, answer: VisitHandler): void {
    this.#app.get(`${this.#path}/${path}`, (c) => this.#welcome(c, rootFrom(path), answer));
  }

  /** What a form of our own pages is sent to. */
  post(path: string, answer: VisitHandler): void {
    this.#app.post(`${this.#path}/${path}`, (c) => this.#welcome(c, rootFrom(path), answer));
  }
}
