import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** Writes which modules a program loads, when it is loaded before that. */
registerHooks({
  load(url, context, nextLoad) {
    appendFileSync(process.env['LOADED_MODULES']!, `${url}\n`);
    return nextLoad(url, context);
  },
});
