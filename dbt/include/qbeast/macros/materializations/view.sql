{# dbt-spark's view. If a run on a sample creates it, it keeps reading that sample, and a property
   records the fraction. #}
{% materialization view, adapter='qbeast' %}
  {%- set built_from = adapter.qbeast_built_from(model, graph) -%}
  {%- set result = create_or_replace_view() -%}
  {%- if built_from is not none -%}
    {% do adapter.qbeast_mark_sampled(this.incorporate(type='view'), built_from) %}
  {%- endif -%}
  {{ return(result) }}
{% endmaterialization %}
