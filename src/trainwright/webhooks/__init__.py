"""The admission webhooks of a cluster: the embedded server's rules, asked over HTTPS. A thin shell."""
