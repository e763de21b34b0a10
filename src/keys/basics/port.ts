/**
 * A feature's own data in a store. The feature declares the port with its rules, and the store implements it with
 * the feature's tables, so that neither keys nor transactions depend on the feature.
 * @typeParam Reader methods for use at any time
 * @typeParam Writer the same in a transaction, with methods that change data
 */
export interface Port<Reader, Writer extends Reader = Reader> {
  readonly name: string;
  /** For the compiler alone. */
  readonly sides?: { reader: Reader; writer: Writer };
}

/** Declares a port. @param name its subject, such as `sessions` */
export function declarePort<Reader, Writer extends Reader = Reader>(name: string): Port<Reader, Writer> {
  return { name };
}

/** Gives the ports that features read. */
export interface ReadPorts {
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Reader;
}

/** Gives the ports that features read and write in a transaction. */
export interface WritePorts {
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Writer;
}
