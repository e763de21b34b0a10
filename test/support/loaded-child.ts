import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** Loaded before a program: writes which modules that loads, and lets it not find packages of one scope. */
registerHooks({
  resolve(specifier, context, nextResolve) {
    const missing = process.env['MISSING_PACKAGES'];
    if (missing === undefined || !specifier.startsWith(missing)) return nextResolve(specifier, context);
    throw Object.assign(new Error(`Cannot find package '${specifier}'`), { code: 'ERR_MODULE_NOT_FOUND' });
  },
  load(url, context, nextLoad) {
    appendFileSync(process.env['LOADED_MODULES']!, `${url}\n`);
    return nextLoad(url, context);
  },
});
